package plan

import (
	"regexp"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pergola-dev/pergola/render"
)

// Place is a bundle together with the name of the cluster it goes to.
type Place struct {
	Cluster string
	Bundle  render.Bundle
}

// Bundles compares two renderings of a landscape.
func Bundles(from, to []Place) Plan {
	var p Plan
	old, new := index(from), index(to)
	renamed := followHashes(old, new)
	for key, n := range new {
		o, ok := old[key]
		if before, moved := renamed[key]; moved {
			o, ok = old[before], true
		}
		item := n.item()
		switch {
		case !ok:
			item.Action = Create
		default:
			item.Fields = Compare(o.object.Object, n.object.Object)
			if len(item.Fields) == 0 {
				p.Unchanged++
				continue
			}
			item.Action, item.Reason = changeOrRecreate(o.object.Unstructured, item.Fields)
		}
		item.Consequences = consequences(item, o.object.Unstructured, n.object.Unstructured)
		p.Items = append(p.Items, item)
	}
	taken := map[string]bool{}
	for _, before := range renamed {
		taken[before] = true
	}
	for key, o := range old {
		if _, ok := new[key]; ok || taken[key] {
			continue
		}
		item := o.item()
		item.Action = Delete
		if o.bundle.Delivery.KeepObjects {
			continue
		}
		item.Consequences = consequences(item, o.object.Unstructured, nil)
		p.Items = append(p.Items, item)
	}
	p.Sort()
	return p
}

type placed struct {
	cluster string
	bundle  render.Bundle
	object  render.Object
}

func (p placed) item() Item {
	return Item{
		Cluster: p.cluster, Owner: p.bundle.Owner.String(), Component: p.bundle.Component,
		Bundle: p.bundle.Name, Object: refOf(p.object.Unstructured), Origin: p.object.Origin.String(),
	}
}

func refOf(o *unstructured.Unstructured) Ref {
	return Ref{APIVersion: o.GetAPIVersion(), Kind: o.GetKind(), Namespace: o.GetNamespace(), Name: o.GetName()}
}

// index keys objects by cluster, group, kind, namespace and name: an object that moves to
// another bundle is no deletion.
func index(places []Place) map[string]placed {
	out := map[string]placed{}
	for _, p := range places {
		for _, o := range p.Bundle.Objects {
			ref := refOf(o.Unstructured)
			out[p.Cluster+"|"+ref.Group()+"|"+ref.Kind+"|"+ref.Namespace+"|"+ref.Name] = placed{p.Cluster, p.Bundle, o}
		}
	}
	return out
}

var hashSuffix = regexp.MustCompile(`-[0-9a-f]{8}$`)

// followHashes pairs ConfigMaps and Secrets whose name is a hash of their
// content: a reviewer wants to see what changed inside, not a new and a gone object.
func followHashes(old, new map[string]placed) map[string]string {
	gone := map[string]string{}
	for key, o := range old {
		if _, ok := new[key]; !ok && hashed(o) {
			gone[hashSuffix.ReplaceAllString(key, "")] = key
		}
	}
	out := map[string]string{}
	for key, n := range new {
		if _, ok := old[key]; ok || !hashed(n) {
			continue
		}
		if before, ok := gone[hashSuffix.ReplaceAllString(key, "")]; ok {
			out[key] = before
		}
	}
	return out
}

func hashed(p placed) bool {
	kind := p.object.GetKind()
	return (kind == "ConfigMap" || kind == "Secret") && hashSuffix.MatchString(p.object.GetName())
}
