// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pergola-dev/pergola/change"
)

// builtinEquivalences are upstream's: kinds that moved to another API group.
var builtinEquivalences = [][]schema.GroupKind{
	{{Group: "extensions", Kind: "Deployment"}, deploymentKind},
	{{Group: "extensions", Kind: "DaemonSet"}, {Group: "apps", Kind: "DaemonSet"}},
	{{Group: "extensions", Kind: "ReplicaSet"}, {Group: "apps", Kind: "ReplicaSet"}},
	{{Group: "extensions", Kind: "StatefulSet"}, statefulSet},
	{{Group: "extensions", Kind: "Ingress"}, {Group: "networking.k8s.io", Kind: "Ingress"}},
	{{Group: "extensions", Kind: "NetworkPolicy"}, {Group: "networking.k8s.io", Kind: "NetworkPolicy"}},
}

// deletionCandidate is an object of the inventory to be deleted, with its live state.
type deletionCandidate struct {
	entry Entry
	live  *unstructured.Unstructured
}

// prune deletes the objects of the inventory that the set no longer declares.
func (r *setRun) prune(ctx context.Context) {
	wanted := r.wantedKeys()
	for _, ref := range r.ignored {
		if _, ours := r.entries[objectKeyOf(ref)]; ours {
			r.removeEngineAnnotations(ctx, ref)
		}
		delete(r.entries, objectKeyOf(ref))
		wanted[objectKeyOf(ref)] = true
	}
	for _, ref := range r.refused {
		wanted[objectKeyOf(ref)] = true
	}
	failed := map[schema.GroupKind]Ref{}
	for _, o := range r.outcomes {
		if o.action == Failed || o.action == Skipped {
			failed[o.ref.GroupKind()] = o.ref
		}
	}
	var leaving []Entry
	for _, e := range r.sortedOldEntries() {
		switch {
		case wanted[e.key()]:
		case ctx.Err() != nil:
			r.recordRemaining(e, HeldBack, "interrupted before it was deleted")
		default:
			leaving = append(leaving, e)
		}
	}
	items := r.filterDeletable(r.findDeletionCandidates(ctx, leaving), failed)
	if len(r.desired) == 0 && !r.opts.AllowEmpty {
		for _, c := range items {
			r.recordRemaining(c.entry, HeldBack, "the set is empty, which may be a mistake: nothing is deleted unless that is allowed")
		}
		items = nil
	}
	if r.opts.NoDelete {
		items = r.holdUnrequestedDeletions(items)
	} else {
		items = r.filterApproved(items, r.opts.ApprovePrune)
	}
	deadline := r.engine.clock.Now().Add(r.opts.DeleteTimeout)
	r.deletePhases(ctx, reversed(splitIntoPhases(items, func(c deletionCandidate) Ref { return c.entry.Ref })),
		func() time.Duration { return deadline.Sub(r.engine.clock.Now()) }, false)
	r.dropUnsentEntries()
}

// filterDeletable drops candidates that must not be deleted now, even with an approval. examine has
// dropped objects that another set has or that no longer exist: otherwise two sets that exchange
// objects would block each other.
func (r *setRun) filterDeletable(items []deletionCandidate, failed map[schema.GroupKind]Ref) []deletionCandidate {
	return slices.DeleteFunc(items, func(c deletionCandidate) bool {
		ref, replacement := failed[c.entry.GroupKind()]
		switch {
		case c.entry.GroupKind() == crdKind && !r.opts.PruneCRDs:
			r.recordRemaining(c.entry, Retained, "CustomResourceDefinitions stay until the set is deleted")
		case replacement:
			r.recordRemaining(c.entry, HeldBack, "waits for "+ref.String()+", which could not be applied and may be its replacement")
		default:
			return false
		}
		return true
	})
}

// removeEngineAnnotations removes the engine's annotations from an object that is no longer ours.
func (r *setRun) removeEngineAnnotations(ctx context.Context, ref Ref) {
	if live, _ := r.cached(ref); r.canChangeAnnotations(live) {
		// before the write, which would count as drift
		r.engine.tracker.untrack(r.cluster, objectKeyOf(ref))
		r.removeAnnotations(ctx, live, r.engine.keys.Origin, r.engine.keys.Description)
	}
}

// removeDescription removes the hint "changes are reverted" from an ignored object, as upstream
// does.
func (r *setRun) removeDescription(ctx context.Context, live *unstructured.Unstructured) {
	if r.canChangeAnnotations(live) && live.GetAnnotations()[r.engine.keys.Description] != "" {
		r.removeAnnotations(ctx, live, r.engine.keys.Description)
	}
}

// canChangeAnnotations reports whether this run may change the engine's annotations on an object:
// another set may own it.
func (r *setRun) canChangeAnnotations(live *unstructured.Unstructured) bool {
	return live != nil && !r.dry && r.isOwnOrigin(live.GetAnnotations()[r.engine.keys.Origin])
}

// removeAnnotations removes annotations. Errors do not matter: the annotations are hints for
// people.
func (r *setRun) removeAnnotations(ctx context.Context, live *unstructured.Unstructured, annotations ...string) {
	gone := map[string]any{}
	for _, a := range annotations {
		gone[a] = nil
	}
	_, _ = r.cluster.mergePatch(ctx, RefOf(live), map[string]any{"metadata": map[string]any{"annotations": gone}}, r.set.FieldManager, "")
}

// wantedKeys returns the desired objects, under all equivalent kinds.
func (r *setRun) wantedKeys() map[objectKey]bool {
	out := map[objectKey]bool{}
	groups := append(append([][]schema.GroupKind{}, builtinEquivalences...), r.set.Equivalences...)
	for _, d := range r.desired {
		out[objectKeyOf(d.ref)] = true
		for _, group := range groups {
			for _, gk := range group {
				if gk == d.ref.GroupKind() {
					for _, same := range group {
						out[objectKey{gk: same, name: objectKeyOf(d.ref).name}] = true
					}
				}
			}
		}
	}
	for k := range r.entries {
		if out[k] && !r.isDesired(k) {
			delete(r.entries, k) // the same object under its old group
		}
	}
	return out
}

func (r *setRun) isDesired(k objectKey) bool {
	for _, d := range r.desired {
		if objectKeyOf(d.ref) == k {
			return true
		}
	}
	return false
}

func (r *setRun) sortedOldEntries() []Entry {
	var out []Entry
	for _, e := range r.sortedEntries() {
		if _, old := r.oldEntries[e.key()]; old {
			out = append(out, e)
		}
	}
	return out
}

// dropUnsentEntries drops announced objects that were not tried: they cannot exist.
func (r *setRun) dropUnsentEntries() {
	for k, o := range r.outcomes {
		if _, old := r.oldEntries[k]; !old && (o.action == Skipped || o.action == Ignored) {
			delete(r.entries, k)
		}
	}
}

// recordRemaining records an object that is not deleted and remains in the inventory.
func (r *setRun) recordRemaining(e Entry, action Action, message string) {
	r.recordDeletion(outcome{ref: e.Ref, action: action, message: message})
}

// dropEntry records an object that is not deleted and is no longer ours.
func (r *setRun) dropEntry(e Entry, action Action, message string) {
	r.mu.Lock()
	delete(r.entries, e.key())
	r.mu.Unlock()
	r.recordDeletion(outcome{ref: e.Ref, action: action, message: message})
}

func (r *setRun) recordDeletion(o outcome) {
	r.mu.Lock()
	r.deletionOutcomes = append(r.deletionOutcomes, o)
	if e, ok := r.entries[objectKeyOf(o.ref)]; ok && o.action == Deleting {
		e.AppliedDigest, e.LiveDigest, e.Deleting, e.HeldReason = "", "", true, change.Reason{}
		r.entries[objectKeyOf(o.ref)] = e
	}
	r.mu.Unlock()
	r.reportOutcome(o)
}

// findDeletionCandidates reads the live objects and drops those that must not be deleted.
func (r *setRun) findDeletionCandidates(ctx context.Context, entries []Entry) []deletionCandidate {
	var out []deletionCandidate
	for _, e := range entries {
		live, err := r.readObject(ctx, e.Ref)
		switch {
		case err != nil:
			r.recordDeletion(r.failedDeletion(e.Ref, err))
		case live == nil && r.engine.inFlight.has(r.cluster, e.key()):
			r.recordRemaining(e, Deleting, inFlightNote)
		case live == nil:
			r.dropEntry(e, AlreadyDeleted, "it no longer existed")
		case r.opts.IsDeclaredElsewhere != nil && r.opts.IsDeclaredElsewhere(e.Ref):
			r.dropEntry(e, MovedToOtherSet, "another set declares it")
		case r.isForeign(e, live):
			r.dropEntry(e, MovedToOtherSet, "it belongs to "+live.GetAnnotations()[r.engine.keys.Origin])
		case !r.isOwnObject(e, live):
			r.dropEntry(e, NotOwned, notOwnedMessage)
		case r.set.LeaveToCollector && r.isCollectable(live):
			r.dropEntry(e, Retained, "the garbage collector deletes it when nothing refers to it")
		case isTrueAnnotation(live.GetAnnotations()[r.engine.keys.KeepObject]):
			r.dropEntry(e, Retained, "annotation "+r.engine.keys.KeepObject)
		case live.GetAnnotations()[r.engine.keys.Mode] == "Ignore":
			r.dropEntry(e, Retained, "annotation "+r.engine.keys.Mode)
		case isTrueAnnotation(live.GetAnnotations()[r.engine.keys.Ignore]):
			r.recordRemaining(e, Ignored, "annotation "+r.engine.keys.Ignore)
		default:
			out = append(out, deletionCandidate{e, live})
		}
	}
	return out
}

// isCollectable reports whether a garbage collector handles an object.
func (r *setRun) isCollectable(live *unstructured.Unstructured) bool {
	gk := groupKindOf(live)
	return (gk == secretKind || gk == configMapKind) && isTrueAnnotation(live.GetLabels()[r.engine.keys.GarbageCollectable])
}

// filterApproved passes the candidates through the gate. Deletions that have begun need no
// approval.
func (r *setRun) filterApproved(items []deletionCandidate, gate func([]Entry) []HeldObject) []deletionCandidate {
	if gate == nil || len(items) == 0 {
		return items
	}
	var ask []Entry
	for _, c := range items {
		if c.live.GetDeletionTimestamp() == nil {
			ask = append(ask, c.entry)
		}
	}
	if len(ask) == 0 {
		return items
	}
	held := map[objectKey]change.Reason{}
	for _, h := range gate(ask) {
		held[objectKeyOf(h.Ref)] = h.Reason
	}
	var out []deletionCandidate
	for _, c := range items {
		if reason, is := held[c.entry.key()]; is {
			r.recordHeld(c.entry.Ref, reason)
			r.recordDeletion(outcome{ref: c.entry.Ref, action: HeldBack, message: reason.String(), old: c.live})
			continue
		}
		out = append(out, c)
	}
	return out
}

func reversed[T any](in [][]T) [][]T {
	out := make([][]T, 0, len(in))
	for i := len(in) - 1; i >= 0; i-- {
		out = append(out, in[i])
	}
	return out
}
