// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// An inventory says what a set may delete, and it can be wrong: edited, restored from a backup, or
// older than a recreated object. So the live object must show that it is ours, too. Conversely,
// live objects restore a lost inventory.

// notOwnedMessage is why an object leaves the inventory without being deleted.
const notOwnedMessage = "it is in the inventory, but is not ours: it stays unchanged"

// isOwnOrigin reports whether an origin annotation names the set. If source and target cluster
// differ, upstream prepends the identity of the source cluster, which may be added, removed or
// changed later.
func (r *setRun) isOwnOrigin(origin string) bool {
	return origin == r.set.Name || strings.HasSuffix(origin, ":"+r.set.Name) || slices.Contains(r.set.PreviousNames, origin)
}

// isForeign reports whether the live object says that another set owns it, unless that set has
// given it up since. A copy that a person made, with the annotation, always belongs to the set that
// it names.
func (r *setRun) isForeign(e Entry, live *unstructured.Unstructured) bool {
	origin := live.GetAnnotations()[r.engine.keys.Origin]
	if origin == "" || r.isOwnOrigin(origin) || origin == e.Annotations[r.engine.keys.Origin] {
		return false
	}
	return r.opts.IsReleasedBy == nil || !r.isOriginApplied(live) || !r.opts.IsReleasedBy(origin, e.Ref)
}

// isOriginApplied reports whether one of our sets applied the origin annotation of an object.
func (r *setRun) isOriginApplied(live *unstructured.Unstructured) bool {
	return slices.ContainsFunc(managersOf(live), func(m metav1.ManagedFieldsEntry) bool {
		return (r.isOwnManager(m) || r.isSiblingManager(m)) && ownedFields(live, m.Manager).Has(r.originPath())
	})
}

// isOwnObject reports whether a live object that is not foreign shows that it is of this set, by
// its origin annotation or our fields. An entry that we never applied may come from upstream's
// inventory, whose older objects have no origin annotation. For them the label counts, if a
// component with such inventories wrote it.
func (r *setRun) isOwnObject(e Entry, live *unstructured.Unstructured) bool {
	if live.GetAnnotations()[r.engine.keys.Origin] != "" || slices.ContainsFunc(managersOf(live), r.isOwnManager) {
		return true
	}
	if e.AppliedDigest != "" || live.GetLabels()[r.engine.keys.ManagedByLabel] != r.engine.keys.ManagedByValue {
		return false
	}
	for _, m := range managersOf(live) {
		for _, f := range r.engine.takeoverManagers {
			if f.HasInventories && f.Name == m.Manager && f.Operation == m.Operation {
				return true
			}
		}
	}
	return false
}

// failIfOwnedElsewhere fails an object that another set declares, or took over since our last
// apply.
func (r *setRun) failIfOwnedElsewhere(d *desiredObject, live *unstructured.Unstructured) (outcome, bool) {
	origin := live.GetAnnotations()[r.engine.keys.Origin]
	if origin == "" || r.isOwnOrigin(origin) {
		return outcome{}, false
	}
	old := r.oldEntries[objectKeyOf(d.ref)]
	message, hint := r.nounOfSet()+origin+" declares this object as well, and applied it first", "declare the object in only one of the two"
	switch declares := r.opts.IsDeclaredBy; {
	case declares != nil:
		declared, known := declares(origin, d.ref)
		switch {
		case declared:
		case known, r.isForced(d), origin == old.Annotations[r.engine.keys.Origin], !r.isOriginApplied(live):
			return outcome{}, false
		default:
			message = r.nounOfSet() + origin + " owns this object, and Pergola cannot check whether it still declares it"
			hint += "; if the other no longer exists, " + r.engine.forceHint(d.ref)
		}
	default:
		if old.AppliedDigest == "" || origin == old.Annotations[r.engine.keys.Origin] || !r.isOriginApplied(live) {
			return outcome{}, false
		}
		message = r.nounOfSet() + origin + " has taken this object over"
	}
	e := &ObjectError{Cluster: r.cluster.name, Object: d.ref, Op: "apply", Reason: ReasonOwnedElsewhere, Source: d.source,
		Message: message, Hint: hint, Set: origin}
	return outcome{ref: d.ref, action: Failed, message: e.Message, err: e}, true
}

// nounOfSet returns the word for a set in messages.
func (r *setRun) nounOfSet() string {
	if r.set.DisplayKind == "" {
		return "set "
	}
	return r.set.DisplayKind + " "
}

// rebuildInventory finds the objects of a set whose inventory was lost. It costs nothing if the
// desired kinds have none of them, as before the first apply. Otherwise it also opens the kinds of
// Set.RebuildFrom.
func (r *setRun) rebuildInventory(ctx context.Context) error {
	if len(r.set.RebuildFrom) == 0 || len(r.oldEntries) > 0 || len(r.objectsByOrigin()) == 0 {
		return nil
	}
	kinds := map[schema.GroupVersionKind]bool{}
	for _, gvk := range r.set.RebuildFrom {
		kinds[gvk] = true
	}
	if err := r.openCaches(ctx, kinds); err != nil {
		return err
	}
	for _, o := range r.objectsByOrigin() {
		e := Entry{Ref: RefOf(o), Labels: o.GetLabels(), Annotations: map[string]string{r.engine.keys.Origin: r.set.Name}}
		r.oldEntries[e.key()], r.entries[e.key()] = e, e
	}
	return nil
}

// objectsByOrigin returns the objects in the open caches whose origin annotation names this set and
// was applied by us. A copy that a person made has the annotation, too, but not from us.
func (r *setRun) objectsByOrigin() []*unstructured.Unstructured {
	path := fieldpath.MakePathOrDie("metadata", "annotations", r.engine.keys.Origin)
	var out []*unstructured.Unstructured
	for _, w := range r.stores {
		w.list(func(o *unstructured.Unstructured) {
			origin, _, _ := unstructured.NestedString(o.Object, "metadata", "annotations", r.engine.keys.Origin)
			if origin == r.set.Name && ownedFields(o, r.set.FieldManager).Has(path) {
				out = append(out, o)
			}
		})
	}
	return out
}

// KindsOf returns the kinds of some objects, each once.
func KindsOf(objects ...*unstructured.Unstructured) []schema.GroupVersionKind {
	var out []schema.GroupVersionKind
	for _, o := range objects {
		if gvk := o.GroupVersionKind(); !slices.Contains(out, gvk) {
			out = append(out, gvk)
		}
	}
	return out
}
