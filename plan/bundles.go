// SPDX-License-Identifier: Apache-2.0

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

// ClusterBundle is a bundle with the name of its target cluster.
type ClusterBundle struct {
	Cluster string
	Bundle  render.Bundle
	// Defaulted are objects of the bundle with the fields that the API defaults. They decide the
	// consequences of an item if both sides have them. The fields of the item are those of the
	// declaration.
	Defaulted map[change.Ref]*unstructured.Unstructured
}

// CompareBundles compares two renderings of a landscape: it predicts what applying the second does
// to clusters with the first. Hidden values have hashes with a new random key.
func CompareBundles(from, to []ClusterBundle) change.Plan {
	return CompareMaskedBundles(redact.NewMasking(nil), from, to)
}

// AssignClusters adds the target cluster to each bundle.
func AssignClusters(bundles []render.Bundle, clusterOf func(render.Bundle) string) []ClusterBundle {
	out := make([]ClusterBundle, 0, len(bundles))
	for _, b := range bundles {
		out = append(out, ClusterBundle{Cluster: clusterOf(b), Bundle: b})
	}
	return out
}

// CompareMaskedBundles is Bundles with hashes by the key of the masking.
func CompareMaskedBundles(m redact.Masking, from, to []ClusterBundle) change.Plan {
	var p change.Plan
	old, new := indexObjects(from, nil), indexObjects(to, nil)
	if len(old) < countObjects(from) {
		old = indexObjects(from, new)
	}
	markAutoscaled(new)
	renamed := pairHashedNames(old, new)
	replaced := map[string]bool{}
	asleep := hibernatedControlPlanes(from, to)
	applied := map[applySetKey]bool{}
	for _, p := range to {
		applied[applySetKey{p.Cluster, p.Bundle.Owner.String(), p.Bundle.Name}] = true
	}
	for key, n := range new {
		before := key
		if former, ok := renamed[key]; ok {
			before = former
			replaced[former] = true
		}
		o, known := old[before]
		if item, changed := compareObject(m, o, n, known); changed {
			dropHibernatedEffects(&item, asleep, o.object.Unstructured, n.object.Unstructured)
			p.Items = append(p.Items, item)
		} else {
			p.Unchanged++
		}
	}
	for key, o := range old {
		if _, ok := new[key]; !ok && !replaced[key] {
			item := removalItem(o, applied[applySetOf(o)])
			dropHibernatedEffects(&item, asleep, o.object.Unstructured, nil)
			p.Items = append(p.Items, item)
		}
	}
	p.SortAndCount()
	return p
}

func compareObject(m redact.Masking, o, n clusterObject, known bool) (change.Item, bool) {
	if known && (o.object.Unstructured == n.object.Unstructured || o.hasSameBundle(n) || jsonvalue.Equal(o.object.Object, n.object.Object)) {
		return change.Item{}, false
	}
	item := n.item()
	if why := ignoreReason(n.object.Unstructured); why != "" {
		// An ignored object is reported only if it was applied before.
		item.Action, item.Reason = change.Keep, why+": it is no longer applied, and stays unchanged in the cluster"
		return item, known && ignoreReason(o.object.Unstructured) == ""
	}
	if !known {
		item.Action = change.Create
		setConsequences(&item, nil, n)
		return item, true
	}
	item.Fields = m.CompareMeaning(o.object.Object, n.object.Object)
	if len(item.Fields) == 0 {
		return item, false
	}
	if former := o.object.GetName(); former != item.Object.Name {
		item.PreviousName = former
		item.Fields = slices.DeleteFunc(item.Fields, func(f change.Field) bool { return f.Path == "metadata.name" })
	}
	item.Action, item.Reason = objectChange{o.object.Object, n.object.Object, item.Fields, n.isAutoscaled}.predictAction(o.object.Unstructured, n.object.Unstructured)
	if why := ignoreReason(o.object.Unstructured); why != "" {
		item.Reason = joinSentences(item.Reason, "it was not applied before ("+why+"): the cluster may have a different object, or none")
	}
	if before, after := o.defaulted[item.Object], n.defaulted[item.Object]; before != nil && after != nil {
		judged := item
		judged.Fields = m.CompareMeaning(before.Object, after.Object)
		setConsequences(&judged, before, clusterObject{object: render.Object{Unstructured: after}})
		item.Consequences, item.Pools = append(judged.Consequences, versionConsequences(item, judged)...), judged.Pools
		return item, true
	}
	setConsequences(&item, o.object.Unstructured, n)
	return item, true
}

// ignoreReason returns a reason for not applying a declared object, which is an annotation, or ""
// if there is none.
func ignoreReason(o *unstructured.Unstructured) string {
	switch {
	case o.GetAnnotations()[annotationMode] == "Ignore":
		return "annotation " + annotationMode
	case isTrue(o, annotationIgnore):
		return "annotation " + annotationIgnore
	}
	return ""
}

func joinSentences(texts ...string) string {
	return strings.Join(slices.DeleteFunc(texts, func(s string) bool { return s == "" }), "; ")
}

// versionConsequences warns of a version that a Shoot declares now and left open before. The
// current one was chosen at creation and may differ.
func versionConsequences(declared, inForce change.Item) []string {
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
			out = append(out, fmt.Sprintf("sets the version to %s, which was left open: %s if it runs another one", now, what))
		}
	}
	return slices.Compact(out)
}

// hasSameBundle reports whether the whole bundles are equal, and so their objects.
func (p clusterObject) hasSameBundle(other clusterObject) bool {
	a, b := p.bundle.Digest, other.bundle.Digest
	return a == b && a.Symbolic != "" && len(p.bundle.Objects) == len(other.bundle.Objects)
}

// setConsequences sets the consequences of an item. Fields that keep their live value have none.
func setConsequences(i *change.Item, old *unstructured.Unstructured, n clusterObject) {
	judged, new := *i, n.object.Unstructured
	if old != nil && new != nil {
		kept, _ := objectChange{old.Object, new.Object, i.Fields, n.isAutoscaled}.retainedFields(change.RefOf(old).GroupKind())
		judged.Fields = fieldsExcept(i.Fields, kept)
	}
	i.Consequences = Consequences(judged, old, new)
	i.Pools = PoolChanges(judged, old, new)
}

// applySetKey identifies the objects that the engine applies as one set.
type applySetKey struct{ cluster, owner, bundle string }

func applySetOf(p clusterObject) applySetKey {
	return applySetKey{p.cluster, p.bundle.Owner.String(), p.bundle.Name}
}

// Annotations that retain objects in a cluster after their removal from Git.
const (
	annotationKeep   = "resources.gardener.cloud/keep-object"
	annotationMode   = "resources.gardener.cloud/mode"
	annotationIgnore = "resources.gardener.cloud/ignore"
)

// removalItem returns the item of an object that is no longer declared; applied reports whether its
// bundle still is. Retention follows package apply, prune.go.
func removalItem(o clusterObject, applied bool) change.Item {
	item := o.item()
	annotations := o.object.GetAnnotations()
	switch {
	case o.bundle.Delivery.KeepObjects:
		item.Action, item.Reason = change.Keep, "its bundle keeps objects"
	case annotations[annotationMode] == "Ignore":
		item.Action, item.Reason = change.Keep, "annotation "+annotationMode+": it was never applied"
	case applied && item.Object.Kind == "CustomResourceDefinition" && isKnownGroup(item.Object):
		item.Action, item.Reason = change.Keep, "definitions stay until their bundle is deleted as a whole"
	case isTrue(o.object.Unstructured, annotationKeep):
		item.Action, item.Reason = change.Keep, "annotation "+annotationKeep
	case isTrue(o.object.Unstructured, annotationIgnore):
		item.Action, item.Reason = change.Keep, "annotation "+annotationIgnore
	default:
		item.Action = change.Delete
	}
	setConsequences(&item, o.object.Unstructured, clusterObject{})
	return item
}

// clusterObject is an object with its bundle and cluster.
type clusterObject struct {
	cluster   string
	bundle    *render.Bundle
	object    render.Object
	defaulted map[change.Ref]*unstructured.Unstructured
	// isAutoscaled reports whether an autoscaler sets its replicas.
	isAutoscaled bool
}

func (p clusterObject) item() change.Item {
	return change.Item{
		Cluster: p.cluster, Owner: p.bundle.Owner.String(), Component: p.bundle.Component,
		Bundle: p.bundle.Name, Object: change.RefOf(p.object.Unstructured), Origin: p.object.Origin.String(),
	}
}

// indexObjects keys objects by cluster, group, kind, namespace and name, so that moving to another
// bundle is not a deletion. If several bundles have an object, which no cluster supports, the
// bundle that has it in keeping wins.
func indexObjects(places []ClusterBundle, keeping map[string]clusterObject) map[string]clusterObject {
	out := make(map[string]clusterObject, countObjects(places))
	for i := range places {
		p := &places[i]
		for _, o := range p.Bundle.Objects {
			k, n := objectKey(p.Cluster, o.Unstructured), clusterObject{cluster: p.Cluster, bundle: &p.Bundle, object: o, defaulted: p.Defaulted}
			if kept, is := keeping[k]; is && applySetOf(kept) != applySetOf(n) {
				if _, twin := out[k]; twin {
					continue
				}
			}
			out[k] = n
		}
	}
	return out
}

// markAutoscaled marks the workloads that an autoscaler scales.
func markAutoscaled(all map[string]clusterObject) {
	for _, hpa := range all {
		o := hpa.object
		if o.GetKind() != "HorizontalPodAutoscaler" || change.RefOf(o.Unstructured).Group() != "autoscaling" {
			continue
		}
		target := &unstructured.Unstructured{Object: map[string]any{}}
		target.SetAPIVersion("apps/v1")
		target.SetKind(nestedText(o.Object, "spec", "scaleTargetRef", "kind"))
		target.SetNamespace(o.GetNamespace())
		target.SetName(nestedText(o.Object, "spec", "scaleTargetRef", "name"))
		if n, there := all[objectKey(hpa.cluster, target)]; there {
			n.isAutoscaled = true
			all[objectKey(hpa.cluster, target)] = n
		}
	}
}

// countObjects counts the objects of all places.
func countObjects(places []ClusterBundle) int {
	n := 0
	for i := range places {
		n += len(places[i].Bundle.Objects)
	}
	return n
}

func objectKey(cluster string, o *unstructured.Unstructured) string {
	ref := change.RefOf(o)
	return cluster + "|" + ref.Group() + "|" + ref.Kind + "|" + ref.Namespace + "|" + ref.Name
}

// hashSuffixPattern matches content hashes in names of ConfigMaps, Secrets and
// OperatingSystemConfigs.
var hashSuffixPattern = regexp.MustCompile(`-[0-9a-f]{8}$|-[0-9a-f]{16}(-init|-original)?$`)

// TrimContentHash returns a name without its content hash, and whether it has one. Objects with the
// same base replace each other.
func TrimContentHash(name string) (base string, hashed bool) {
	return hashSuffixPattern.ReplaceAllString(name, "$1"), hashSuffixPattern.MatchString(name)
}

// pairHashedNames pairs objects with a content hash in their names, new key to old key. Reviewers
// then see a change instead of a deletion and a creation.
func pairHashedNames(old, new map[string]clusterObject) map[string]string {
	free := map[string][]string{}
	for _, k := range hashedKeysOnlyIn(old, new) {
		base := hashSuffixPattern.ReplaceAllString(k, "$1")
		free[base] = append(free[base], k)
	}
	out := map[string]string{}
	for _, k := range hashedKeysOnlyIn(new, old) {
		base := hashSuffixPattern.ReplaceAllString(k, "$1")
		if left := free[base]; len(left) > 0 {
			out[k], free[base] = left[0], left[1:]
		}
	}
	return out
}

// hashedKeysOnlyIn returns the keys of objects with hashed names that other does not have.
func hashedKeysOnlyIn(all, other map[string]clusterObject) []string {
	var out []string
	for k, p := range all {
		if _, both := other[k]; !both && isHashed(p) {
			out = append(out, k)
		}
	}
	slices.Sort(out)
	return out
}

func isHashed(p clusterObject) bool {
	return slices.Contains([]string{"ConfigMap", "Secret", "OperatingSystemConfig"}, p.object.GetKind()) && hashSuffixPattern.MatchString(p.object.GetName())
}
