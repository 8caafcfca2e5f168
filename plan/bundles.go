package plan

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pergola-dev/pergola/change"
	"github.com/pergola-dev/pergola/change/redact"
	"github.com/pergola-dev/pergola/internal/jsonvalue"
	"github.com/pergola-dev/pergola/render"
)

// Place is a bundle with the name of its target cluster.
type Place struct {
	Cluster string
	Bundle  render.Bundle
	// InForce are objects of the bundle with the fields that the API defaults. They decide the
	// consequences of an item if both sides have them. The fields of the item are those of the
	// declaration.
	InForce map[change.Ref]*unstructured.Unstructured
}

// Bundles compares two renderings of a landscape: it predicts what applying the second does to
// clusters with the first. Hidden values have hashes with a new random key.
func Bundles(from, to []Place) change.Plan { return MaskedBundles(redact.NewMasking(nil), from, to) }

// Placed adds the target cluster to each bundle.
func Placed(bundles []render.Bundle, clusterOf func(render.Bundle) string) []Place {
	out := make([]Place, 0, len(bundles))
	for _, b := range bundles {
		out = append(out, Place{Cluster: clusterOf(b), Bundle: b})
	}
	return out
}

// MaskedBundles is Bundles with hashes by the key of the masking.
func MaskedBundles(m redact.Masking, from, to []Place) change.Plan {
	var p change.Plan
	old, new := index(from, nil), index(to, nil)
	if len(old) < objects(from) {
		old = index(from, new)
	}
	markScaled(new)
	renamed := followHashes(old, new)
	replaced := map[string]bool{}
	asleep := hibernated(from, to)
	applied := map[setKey]bool{}
	for _, p := range to {
		applied[setKey{p.Cluster, p.Bundle.Owner.String(), p.Bundle.Name}] = true
	}
	for key, n := range new {
		before := key
		if former, ok := renamed[key]; ok {
			before = former
			replaced[former] = true
		}
		o, known := old[before]
		if item, changed := compared(m, o, n, known); changed {
			leaveOut(&item, asleep, o.object.Unstructured, n.object.Unstructured)
			p.Items = append(p.Items, item)
		} else {
			p.Unchanged++
		}
	}
	for key, o := range old {
		if _, ok := new[key]; !ok && !replaced[key] {
			item := gone(o, applied[setOf(o)])
			leaveOut(&item, asleep, o.object.Unstructured, nil)
			p.Items = append(p.Items, item)
		}
	}
	p.Sort()
	return p
}

func compared(m redact.Masking, o, n placed, known bool) (change.Item, bool) {
	if known && (o.object.Unstructured == n.object.Unstructured || o.sameBundle(n) || jsonvalue.Equal(o.object.Object, n.object.Object)) {
		return change.Item{}, false
	}
	item := n.item()
	if why := handsOff(n.object.Unstructured); why != "" {
		// An ignored object is reported only if it was applied before.
		item.Action, item.Reason = change.Keep, why+": it is not applied any more, and stays as it lives"
		return item, known && handsOff(o.object.Unstructured) == ""
	}
	if !known {
		item.Action = change.Create
		judge(&item, nil, n)
		return item, true
	}
	item.Fields = m.Meaning(o.object.Object, n.object.Object)
	if len(item.Fields) == 0 {
		return item, false
	}
	if former := o.object.GetName(); former != item.Object.Name {
		item.Former = former
		item.Fields = slices.DeleteFunc(item.Fields, func(f change.Field) bool { return f.Path == "metadata.name" })
	}
	item.Action, item.Reason = edit{o.object.Object, n.object.Object, item.Fields, n.scaled}.outcome(o.object.Unstructured, n.object.Unstructured)
	if why := handsOff(o.object.Unstructured); why != "" {
		item.Reason = sentences(item.Reason, "it was not applied until now ("+why+"): what lives may be another, or nothing")
	}
	if before, after := o.inForce[item.Object], n.inForce[item.Object]; before != nil && after != nil {
		judged := item
		judged.Fields = m.Meaning(before.Object, after.Object)
		judge(&judged, before, placed{object: render.Object{Unstructured: after}})
		item.Consequences, item.Pools = append(judged.Consequences, named(item, judged)...), judged.Pools
		return item, true
	}
	judge(&item, o.object.Unstructured, n)
	return item, true
}

// handsOff returns a reason for not applying a declared object, which is an annotation; empty if
// there is none.
func handsOff(o *unstructured.Unstructured) string {
	switch {
	case o.GetAnnotations()[annotationMode] == "Ignore":
		return "annotation " + annotationMode
	case isTrue(o, annotationIgnore):
		return "annotation " + annotationIgnore
	}
	return ""
}

func sentences(texts ...string) string {
	return strings.Join(slices.DeleteFunc(texts, func(s string) bool { return s == "" }), "; ")
}

// named warns of a version that a Shoot declares now and left open before. The current one was
// chosen at creation and may differ.
func named(declared, inForce change.Item) []string {
	if declared.Object.Kind != "Shoot" {
		return nil
	}
	var out []string
	for _, f := range declared.Fields {
		isVersion := f.Path == "spec.kubernetes.version" || strings.HasSuffix(f.Path, ".kubernetes.version") || strings.HasSuffix(f.Path, ".machine.image.version")
		now, _ := f.New.(string)
		before, _ := f.Old.(string)
		if !isVersion || strings.Count(now, ".") < 2 || strings.Count(before, ".") >= 2 {
			continue
		}
		if !slices.ContainsFunc(inForce.Fields, func(other change.Field) bool { return other.Path == f.Path }) {
			what := "the cluster is updated"
			if f.Path != "spec.kubernetes.version" {
				what = "nodes are replaced"
			}
			out = append(out, fmt.Sprintf("names the version %s, which was left open: %s where it runs another one", now, what))
		}
	}
	return slices.Compact(out)
}

// sameBundle reports whether the whole bundles are equal, and so their objects.
func (p placed) sameBundle(other placed) bool {
	a, b := p.bundle.Digest, other.bundle.Digest
	return a == b && a.Symbolic != "" && len(p.bundle.Objects) == len(other.bundle.Objects)
}

// judge sets the consequences of an item. Fields that keep their live value have none.
func judge(i *change.Item, old *unstructured.Unstructured, n placed) {
	judged, new := *i, n.object.Unstructured
	if old != nil && new != nil {
		kept, _ := edit{old.Object, new.Object, i.Fields, n.scaled}.staying(change.RefOf(old).GroupKind())
		judged.Fields = fieldsBut(i.Fields, kept)
	}
	i.Consequences = Consequences(judged, old, new)
	i.Pools = Pools(judged, old, new)
}

// setKey identifies the objects that the engine applies as one set.
type setKey struct{ cluster, owner, bundle string }

func setOf(p placed) setKey { return setKey{p.cluster, p.bundle.Owner.String(), p.bundle.Name} }

// Annotations that retain objects in a cluster after their removal from Git.
const (
	annotationKeep   = "resources.gardener.cloud/keep-object"
	annotationMode   = "resources.gardener.cloud/mode"
	annotationIgnore = "resources.gardener.cloud/ignore"
)

// gone returns the item of an object that is no longer declared; applied reports whether its bundle
// still is. Retention follows package apply, prune.go.
func gone(o placed, applied bool) change.Item {
	item := o.item()
	annotations := o.object.GetAnnotations()
	switch {
	case o.bundle.Delivery.KeepObjects:
		item.Action, item.Reason = change.Keep, "its bundle keeps objects"
	case annotations[annotationMode] == "Ignore":
		item.Action, item.Reason = change.Keep, "annotation "+annotationMode+": it was never applied"
	case applied && item.Object.Kind == "CustomResourceDefinition" && known(item.Object):
		item.Action, item.Reason = change.Keep, "definitions stay until their bundle is deleted as a whole"
	case isTrue(o.object.Unstructured, annotationKeep):
		item.Action, item.Reason = change.Keep, "annotation "+annotationKeep
	case isTrue(o.object.Unstructured, annotationIgnore):
		item.Action, item.Reason = change.Keep, "annotation "+annotationIgnore
	default:
		item.Action = change.Delete
	}
	judge(&item, o.object.Unstructured, placed{})
	return item
}

// placed is an object with its bundle and cluster.
type placed struct {
	cluster string
	bundle  *render.Bundle
	object  render.Object
	inForce map[change.Ref]*unstructured.Unstructured
	// scaled reports whether an autoscaler sets its replicas.
	scaled bool
}

func (p placed) item() change.Item {
	return change.Item{
		Cluster: p.cluster, Owner: p.bundle.Owner.String(), Component: p.bundle.Component,
		Bundle: p.bundle.Name, Object: change.RefOf(p.object.Unstructured), Origin: p.object.Origin.String(),
	}
}

// index keys objects by cluster, group, kind, namespace and name, so that moving to another bundle
// is not a deletion. If several bundles have an object, which no cluster supports, the bundle that
// has it in keeping wins.
func index(places []Place, keeping map[string]placed) map[string]placed {
	out := make(map[string]placed, objects(places))
	for i := range places {
		p := &places[i]
		for _, o := range p.Bundle.Objects {
			k, n := key(p.Cluster, o.Unstructured), placed{cluster: p.Cluster, bundle: &p.Bundle, object: o, inForce: p.InForce}
			if kept, is := keeping[k]; is && setOf(kept) != setOf(n) {
				if _, twin := out[k]; twin {
					continue
				}
			}
			out[k] = n
		}
	}
	return out
}

// markScaled marks the workloads that an autoscaler scales.
func markScaled(all map[string]placed) {
	for _, hpa := range all {
		o := hpa.object
		if o.GetKind() != "HorizontalPodAutoscaler" || change.RefOf(o.Unstructured).Group() != "autoscaling" {
			continue
		}
		target := &unstructured.Unstructured{Object: map[string]any{}}
		target.SetAPIVersion("apps/v1")
		target.SetKind(str(o.Object, "spec", "scaleTargetRef", "kind"))
		target.SetNamespace(o.GetNamespace())
		target.SetName(str(o.Object, "spec", "scaleTargetRef", "name"))
		if n, there := all[key(hpa.cluster, target)]; there {
			n.scaled = true
			all[key(hpa.cluster, target)] = n
		}
	}
}

// objects counts the objects of all places.
func objects(places []Place) int {
	n := 0
	for i := range places {
		n += len(places[i].Bundle.Objects)
	}
	return n
}

func key(cluster string, o *unstructured.Unstructured) string {
	ref := change.RefOf(o)
	return cluster + "|" + ref.Group() + "|" + ref.Kind + "|" + ref.Namespace + "|" + ref.Name
}

// hashSuffix matches content hashes in names of ConfigMaps, Secrets and OperatingSystemConfigs.
var hashSuffix = regexp.MustCompile(`-[0-9a-f]{8}$|-[0-9a-f]{16}(-init|-original)?$`)

// Unhashed returns a name without its content hash, and whether it has one. Objects with the same
// base replace each other.
func Unhashed(name string) (base string, hashed bool) {
	return hashSuffix.ReplaceAllString(name, "$1"), hashSuffix.MatchString(name)
}

// followHashes pairs objects with a content hash in their names, new key to old key. Reviewers then
// see a change instead of a deletion and a creation.
func followHashes(old, new map[string]placed) map[string]string {
	free := map[string][]string{}
	for _, k := range hashedOnlyIn(old, new) {
		base := hashSuffix.ReplaceAllString(k, "$1")
		free[base] = append(free[base], k)
	}
	out := map[string]string{}
	for _, k := range hashedOnlyIn(new, old) {
		base := hashSuffix.ReplaceAllString(k, "$1")
		if left := free[base]; len(left) > 0 {
			out[k], free[base] = left[0], left[1:]
		}
	}
	return out
}

// hashedOnlyIn returns the keys of objects with hashed names that other does not have.
func hashedOnlyIn(all, other map[string]placed) []string {
	var out []string
	for k, p := range all {
		if _, both := other[k]; !both && isHashed(p) {
			out = append(out, k)
		}
	}
	slices.Sort(out)
	return out
}

func isHashed(p placed) bool {
	return slices.Contains([]string{"ConfigMap", "Secret", "OperatingSystemConfig"}, p.object.GetKind()) && hashSuffix.MatchString(p.object.GetName())
}
