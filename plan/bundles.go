package plan

import (
	"maps"
	"regexp"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pergola-dev/pergola/render"
)

// Place is a bundle together with the name of the cluster it goes to.
type Place struct {
	Cluster string
	Bundle  render.Bundle
}

// Bundles compares two renderings of a landscape: what applying the second would do to clusters that are as the
// first says.
func Bundles(from, to []Place) Plan {
	var p Plan
	old, new := index(from), index(to)
	renamed := followHashes(old, new)
	replaced := map[string]bool{}
	for key, n := range new {
		before := key
		if former, ok := renamed[key]; ok {
			before = former
			replaced[former] = true
		}
		o, known := old[before]
		if item, changed := compared(o, n, known); changed {
			p.Items = append(p.Items, item)
		} else {
			p.Unchanged++
		}
	}
	for key, o := range old {
		if _, ok := new[key]; !ok && !replaced[key] {
			p.Items = append(p.Items, gone(o))
		}
	}
	p.Sort()
	return p
}

func compared(o, n placed, known bool) (Item, bool) {
	item := n.item()
	if !known {
		item.Action = Create
		item.Consequences = Consequences(item, nil, n.object.Unstructured)
		return item, true
	}
	item.Fields = Compare(o.object.Object, n.object.Object)
	if len(item.Fields) == 0 {
		return item, false
	}
	item.Action, item.Reason = changeOrRecreate(o.object.Unstructured, n.object.Unstructured, item.Fields)
	item.Consequences = Consequences(item, o.object.Unstructured, n.object.Unstructured)
	return item, true
}

const annotationKeep = "resources.gardener.cloud/keep-object"

func gone(o placed) Item {
	item := o.item()
	switch {
	case o.bundle.Delivery.KeepObjects:
		item.Action, item.Reason = Keep, "its bundle keeps objects"
	case o.object.GetAnnotations()[annotationKeep] == "true":
		item.Action, item.Reason = Keep, "annotation "+annotationKeep
	default:
		item.Action = Delete
	}
	item.Consequences = Consequences(item, o.object.Unstructured, nil)
	return item
}

// placed is an object with its bundle and cluster.
type placed struct {
	cluster string
	bundle  render.Bundle
	object  render.Object
}

func (p placed) item() Item {
	return Item{
		Cluster: p.cluster, Owner: p.bundle.Owner.String(), Component: p.bundle.Component,
		Bundle: p.bundle.Name, Object: RefOf(p.object.Unstructured), Origin: p.object.Origin.String(),
	}
}

// index keys objects by cluster, group, kind, namespace and name: an object that moves to another bundle is no
// deletion.
func index(places []Place) map[string]placed {
	out := map[string]placed{}
	for _, p := range places {
		for _, o := range p.Bundle.Objects {
			out[key(p.Cluster, o.Unstructured)] = placed{p.Cluster, p.Bundle, o}
		}
	}
	return out
}

func key(cluster string, o *unstructured.Unstructured) string {
	ref := RefOf(o)
	return cluster + "|" + ref.Group() + "|" + ref.Kind + "|" + ref.Namespace + "|" + ref.Name
}

var hashSuffix = regexp.MustCompile(`-[0-9a-f]{8}$`)

// followHashes pairs ConfigMaps and Secrets whose name is a hash of their content, new key to old key: a
// reviewer wants to see what changed inside, not a new and a gone object.
func followHashes(old, new map[string]placed) map[string]string {
	free := map[string][]string{}
	for _, k := range slices.Sorted(maps.Keys(old)) {
		if _, stays := new[k]; !stays && isHashed(old[k]) {
			base := hashSuffix.ReplaceAllString(k, "")
			free[base] = append(free[base], k)
		}
	}
	out := map[string]string{}
	for _, k := range slices.Sorted(maps.Keys(new)) {
		if _, was := old[k]; was || !isHashed(new[k]) {
			continue
		}
		base := hashSuffix.ReplaceAllString(k, "")
		if left := free[base]; len(left) > 0 {
			out[k], free[base] = left[0], left[1:]
		}
	}
	return out
}

func isHashed(p placed) bool {
	kind := p.object.GetKind()
	return (kind == "ConfigMap" || kind == "Secret") && hashSuffix.MatchString(p.object.GetName())
}
