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

// candidate is an object of the inventory to be deleted, with its live state.
type candidate struct {
	entry Entry
	live  *unstructured.Unstructured
}

// prune deletes the objects of the inventory that the set no longer declares.
func (r *run) prune(ctx context.Context) {
	wanted := r.wantedKeys()
	for _, ref := range r.ignored {
		if _, ours := r.entries[keyOf(ref)]; ours {
			r.release(ctx, ref)
		}
		delete(r.entries, keyOf(ref))
		wanted[keyOf(ref)] = true
	}
	for _, ref := range r.refused {
		wanted[keyOf(ref)] = true
	}
	failed := map[schema.GroupKind]Ref{}
	for _, o := range r.outcomes {
		if o.action == Failed || o.action == Skipped {
			failed[o.ref.GroupKind()] = o.ref
		}
	}
	var leaving []Entry
	for _, e := range r.sortedOld() {
		switch {
		case wanted[e.key()]:
		case ctx.Err() != nil:
			r.stays(e, HeldBack, "interrupted before it was deleted")
		default:
			leaving = append(leaving, e)
		}
	}
	items := r.deletable(r.examine(ctx, leaving), failed)
	if len(r.desired) == 0 && !r.opts.AllowEmpty {
		for _, c := range items {
			r.stays(c.entry, HeldBack, "the set is empty, which may be a mistake: nothing is deleted unless that is allowed")
		}
		items = nil
	}
	if r.opts.NoDelete {
		items = r.allStay(items)
	} else {
		items = r.approved(items, r.opts.ApprovePrune)
	}
	deadline := r.e.clock.Now().Add(r.opts.DeleteTimeout)
	r.deletePhases(ctx, reversed(phases(items, func(c candidate) Ref { return c.entry.Ref })),
		func() time.Duration { return deadline.Sub(r.e.clock.Now()) }, false)
	r.forgetUntried()
}

// deletable drops candidates that must not be deleted now, even with an approval. examine has
// dropped objects that another set has or that no longer exist: otherwise two sets that exchange
// objects would block each other.
func (r *run) deletable(items []candidate, failed map[schema.GroupKind]Ref) []candidate {
	return slices.DeleteFunc(items, func(c candidate) bool {
		ref, replacement := failed[c.entry.GroupKind()]
		switch {
		case c.entry.GroupKind() == crdKind && !r.opts.PruneCRDs:
			r.stays(c.entry, Kept, "CustomResourceDefinitions stay until the set is deleted")
		case replacement:
			r.stays(c.entry, HeldBack, "waits for "+ref.String()+", which could not be applied and may be its replacement")
		default:
			return false
		}
		return true
	})
}

// release removes the engine's annotations from an object that is no longer ours.
func (r *run) release(ctx context.Context, ref Ref) {
	if live, _ := r.live(ref); r.describes(live) {
		r.e.tracked.drop(r.c, keyOf(ref)) // before the write, which would count as drift
		r.takeOff(ctx, live, r.e.keys.Origin, r.e.keys.Description)
	}
}

// undescribe removes the hint "changes are reverted" from an ignored object, as upstream does.
func (r *run) undescribe(ctx context.Context, live *unstructured.Unstructured) {
	if r.describes(live) && live.GetAnnotations()[r.e.keys.Description] != "" {
		r.takeOff(ctx, live, r.e.keys.Description)
	}
}

// describes reports whether this run may change the engine's annotations on an object: another set
// may own it.
func (r *run) describes(live *unstructured.Unstructured) bool {
	return live != nil && !r.dry && r.names(live.GetAnnotations()[r.e.keys.Origin])
}

// takeOff removes annotations. Errors do not matter: the annotations are hints for people.
func (r *run) takeOff(ctx context.Context, live *unstructured.Unstructured, annotations ...string) {
	gone := map[string]any{}
	for _, a := range annotations {
		gone[a] = nil
	}
	_, _ = r.c.mergePatch(ctx, RefOf(live), map[string]any{"metadata": map[string]any{"annotations": gone}}, r.set.FieldManager, "")
}

// wantedKeys returns the desired objects, under all equivalent kinds.
func (r *run) wantedKeys() map[key]bool {
	out := map[key]bool{}
	groups := append(append([][]schema.GroupKind{}, builtinEquivalences...), r.set.Equivalences...)
	for _, d := range r.desired {
		out[keyOf(d.ref)] = true
		for _, group := range groups {
			for _, gk := range group {
				if gk == d.ref.GroupKind() {
					for _, same := range group {
						out[key{gk: same, name: keyOf(d.ref).name}] = true
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

func (r *run) isDesired(k key) bool {
	for _, d := range r.desired {
		if keyOf(d.ref) == k {
			return true
		}
	}
	return false
}

func (r *run) sortedOld() []Entry {
	var out []Entry
	for _, e := range r.sortedEntries() {
		if _, old := r.old[e.key()]; old {
			out = append(out, e)
		}
	}
	return out
}

// forgetUntried drops announced objects that were not tried: they cannot exist.
func (r *run) forgetUntried() {
	for k, o := range r.outcomes {
		if _, old := r.old[k]; !old && (o.action == Skipped || o.action == Ignored) {
			delete(r.entries, k)
		}
	}
}

// stays records an object that is not deleted and remains in the inventory.
func (r *run) stays(e Entry, action Action, message string) {
	r.deleted(outcome{ref: e.Ref, action: action, message: message})
}

// leaves records an object that is not deleted and is no longer ours.
func (r *run) leaves(e Entry, action Action, message string) {
	r.mu.Lock()
	delete(r.entries, e.key())
	r.mu.Unlock()
	r.deleted(outcome{ref: e.Ref, action: action, message: message})
}

func (r *run) deleted(o outcome) {
	r.mu.Lock()
	r.deletion = append(r.deletion, o)
	if e, ok := r.entries[keyOf(o.ref)]; ok && o.action == Deleting {
		e.Applied, e.Live, e.Leaving, e.Held = "", "", true, change.Reason{}
		r.entries[keyOf(o.ref)] = e
	}
	r.mu.Unlock()
	r.tell(o)
}

// examine reads the live objects and drops those that must not be deleted.
func (r *run) examine(ctx context.Context, entries []Entry) []candidate {
	var out []candidate
	for _, e := range entries {
		live, err := r.read(ctx, e.Ref)
		switch {
		case err != nil:
			r.deleted(r.failedDeletion(e.Ref, err))
		case live == nil && r.e.limbo.has(r.c, e.key()):
			r.stays(e, Deleting, inLimbo)
		case live == nil:
			r.leaves(e, Gone, "it was gone already")
		case r.opts.DesiredElsewhere != nil && r.opts.DesiredElsewhere(e.Ref):
			r.leaves(e, HandedOver, "another set declares it")
		case r.isForeign(e, live):
			r.leaves(e, HandedOver, "it belongs to "+live.GetAnnotations()[r.e.keys.Origin])
		case !r.showsOurs(e, live):
			r.leaves(e, LeftAlone, notOurs)
		case r.set.LeaveToCollector && r.isCollectable(live):
			r.leaves(e, Kept, "the garbage collector deletes it when nothing refers to it any more")
		case isTrue(live.GetAnnotations()[r.e.keys.KeepObject]):
			r.leaves(e, Kept, "annotation "+r.e.keys.KeepObject)
		case live.GetAnnotations()[r.e.keys.Mode] == "Ignore":
			r.leaves(e, Kept, "annotation "+r.e.keys.Mode)
		case isTrue(live.GetAnnotations()[r.e.keys.Ignore]):
			r.stays(e, Ignored, "annotation "+r.e.keys.Ignore)
		default:
			out = append(out, candidate{e, live})
		}
	}
	return out
}

// isCollectable reports whether a garbage collector handles an object.
func (r *run) isCollectable(live *unstructured.Unstructured) bool {
	gk := groupKindOf(live)
	return (gk == secretKind || gk == configMapKind) && isTrue(live.GetLabels()[r.e.keys.GarbageCollectable])
}

// approved passes the candidates through the gate. Deletions that have begun need no approval.
func (r *run) approved(items []candidate, gate func([]Entry) []Held) []candidate {
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
	held := map[key]change.Reason{}
	for _, h := range gate(ask) {
		held[keyOf(h.Ref)] = h.Reason
	}
	var out []candidate
	for _, c := range items {
		if reason, is := held[c.entry.key()]; is {
			r.noteHeld(c.entry.Ref, reason)
			r.deleted(outcome{ref: c.entry.Ref, action: HeldBack, message: reason.String(), old: c.live})
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
