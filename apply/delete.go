// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"errors"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pergola-dev/pergola/change"
)

// Delete deletes all objects of a set in reverse order of their kinds, and then its inventory. It
// deletes the objects of one phase concurrently and waits for them until the phase times out. A
// stuck object stays in the inventory, is reported with its finalizer, and blocks only the
// definition of its own kind and its namespace.
func (e *Engine) Delete(ctx context.Context, c *Cluster, s Set, inv Inventory, o DeleteOptions) (*Result, error) {
	r := e.newDeletion(c, s, inv, o, false)
	ctx, span := r.startRunSpan(ctx, "delete set")
	defer span.End()
	r.deleteSet(ctx, o)
	return r.result()
}

// PlanDelete returns what Delete would do now.
func (e *Engine) PlanDelete(ctx context.Context, c *Cluster, s Set, inv Inventory, o DeleteOptions) (change.Plan, error) {
	r := e.newDeletion(c, s, inv, o, true)
	r.deleteSet(ctx, o)
	return r.plan()
}

func (e *Engine) newDeletion(c *Cluster, s Set, inv Inventory, o DeleteOptions, dry bool) *setRun {
	s.Objects = nil
	setDefault(&o.Timeout, 30*time.Second)
	return e.newRun(c, &s, inv, ApplyOptions{DeleteTimeout: o.Timeout, IsDeclaredElsewhere: o.IsDeclaredElsewhere,
		OnObject: o.OnObject, NoWait: o.NoWait}, dry)
}

func (r *setRun) deleteSet(ctx context.Context, o DeleteOptions) {
	if err := r.prepare(ctx); err != nil {
		r.abort("delete", err)
		return
	}
	if err := r.loadState(ctx); err != nil {
		r.abort("read the cluster", err)
		return
	}
	var leaving []Entry
	for _, e := range r.sortedEntries() {
		switch {
		case r.set.KeepObjects:
			r.dropEntry(e, Retained, "the set keeps its objects")
		case o.KeepCRDs && e.GroupKind() == crdKind:
			r.dropEntry(e, Retained, "CustomResourceDefinitions stay")
		default:
			leaving = append(leaving, e)
		}
	}
	items := r.filterApproved(r.findDeletionCandidates(ctx, leaving), o.Approve)
	r.deletePhases(ctx, teardownPhases(items), func() time.Duration { return r.opts.DeleteTimeout }, true)
	if len(r.entries) > 0 || r.dry {
		r.saveState(ctx)
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 1500*time.Millisecond)
	defer cancel()
	if err := r.inv.Remove(ctx); err != nil {
		r.clusterErrors = append(r.clusterErrors, r.cluster.objectErrorFor(Ref{}, "remove the inventory", err))
	}
	r.engine.tracker.replaceSet(r.cluster, r.set.Name, r.set.FieldManager, nil)
}

// teardownPhases returns the phases of application in reverse, with CustomResourceDefinitions last:
// after the namespaces with their custom resources.
func teardownPhases(items []deletionCandidate) [][]deletionCandidate {
	var crds, rest []deletionCandidate
	for _, c := range items {
		if c.entry.GroupKind() == crdKind {
			crds = append(crds, c)
		} else {
			rest = append(rest, c)
		}
	}
	out := reversed(splitIntoPhases(rest, func(c deletionCandidate) Ref { return c.entry.Ref }))
	if len(crds) > 0 {
		out = append(out, crds)
	}
	return out
}

// deletePhases deletes objects phase by phase; patience returns the time limit of a phase when it
// starts. With NoWait, a phase with remaining objects ends the run, unless their deletion is
// overdue.
func (r *setRun) deletePhases(ctx context.Context, phases [][]deletionCandidate, patience func() time.Duration, strict bool) {
	var left *Ref
	for _, phase := range phases {
		if left == nil {
			left = r.deletePhase(ctx, phase, patience(), strict)
			continue
		}
		for _, c := range phase {
			r.recordDeletion(outcome{ref: c.entry.Ref, action: Deleting, message: "is deleted after " + left.String(), waitsForOthers: true})
		}
	}
}

// deletePhase deletes objects concurrently and waits for all of them. An object that still exists
// is an error if strict is set, and Deleting otherwise. deletePhase returns an object that the next
// phases have to wait for, or nil.
func (r *setRun) deletePhase(ctx context.Context, phase []deletionCandidate, timeout time.Duration, strict bool) *Ref {
	var wg sync.WaitGroup
	slots := make(chan struct{}, r.engine.parallel)
	deadline := r.engine.clock.Now().Add(timeout)
	results := make([]outcome, len(phase))
	for i, c := range phase {
		if user := r.dependentOf(c.entry); user != nil {
			results[i] = outcome{ref: c.entry.Ref, action: Deleting, message: "waits until " + user.String() + " no longer exists", waitsForOthers: true}
			continue
		}
		slots <- struct{}{}
		release := sync.OnceFunc(func() { <-slots })
		wg.Go(func() {
			defer release()
			results[i] = r.deleteObject(ctx, c, deadline, strict, release)
		})
	}
	wg.Wait()
	var left *Ref
	for i, o := range results {
		switch {
		case o.action == Deleted && r.engine.inFlight.has(r.cluster, objectKeyOf(o.ref)):
			o = outcome{ref: o.ref, action: Deleting, message: inFlightNote}
		case o.action == Deleted:
			delete(r.entries, objectKeyOf(o.ref))
		case r.opts.NoWait && o.action == Deleting && o.message != "" && r.dependentOf(phase[i].entry) == nil && !r.isDeletionOverdue(phase[i].live):
			left = &o.ref
		}
		r.recordDeletion(o)
	}
	return left
}

// isDeletionOverdue reports whether an object was deleted so long ago that no other deletion waits
// for it.
func (r *setRun) isDeletionOverdue(live *unstructured.Unstructured) bool {
	since := live.GetDeletionTimestamp()
	return since != nil && !r.engine.clock.Now().Before(since.Add(r.opts.DeleteTimeout))
}

// deleteObject deletes one object and waits until it no longer exists; release frees the slot
// before the wait.
func (r *setRun) deleteObject(ctx context.Context, c deletionCandidate, deadline time.Time, strict bool, release func()) (out outcome) {
	if ctx.Err() != nil {
		out = r.failedDeletion(c.entry.Ref, ctx.Err())
		out.waitsForOthers = c.live.GetDeletionTimestamp() == nil
		return out
	}
	told := false
	defer func() { out.deleteRequested = told && !r.engine.inFlight.has(r.cluster, c.entry.key()) }()
	out = outcome{ref: c.entry.Ref, action: Deleted, old: c.live}
	if !r.dry {
		r.engine.tracker.untrack(r.cluster, c.entry.key())
	}
	gone := false
	if c.live.GetDeletionTimestamp() == nil {
		var err error
		if gone, err = r.cluster.delete(ctx, c.live, propagationPolicy(c.entry.Ref), r.dry); err != nil {
			return r.failedDeletion(out.ref, err)
		}
		told = !r.dry
	}
	if r.set.DeletePersistentVolumeClaims && c.entry.GroupKind() == statefulSet {
		if err := r.deleteClaims(ctx, c.live); err != nil {
			return r.failedDeletion(out.ref, err)
		}
	}
	if r.dry || gone {
		return out
	}
	release()
	r.finalizeOverdue(ctx, c.live)
	if r.opts.NoWait {
		return r.deletingOutcome(c.live)
	}
	if r.isDeletionOverdue(c.live) {
		deadline = r.engine.clock.Now()
	}
	err := r.waitForDeletion(ctx, c.live, max(deadline.Sub(r.engine.clock.Now()), time.Millisecond))
	var stuck *ObjectError
	switch {
	case err == nil:
		return out
	case errors.As(err, &stuck) && stuck.Reason == ReasonStuckDeletion && !strict:
		return outcome{ref: out.ref, action: Deleting, message: stuck.Message}
	case errors.As(err, &stuck) && stuck.Reason == ReasonStuckDeletion:
		return outcome{ref: out.ref, action: Deleting, message: stuck.Message, err: stuck}
	}
	return r.failedDeletion(out.ref, err)
}

// deletingOutcome returns the outcome for an object that is being deleted without a wait in this
// run.
func (r *setRun) deletingOutcome(live *unstructured.Unstructured) outcome {
	out := outcome{ref: RefOf(live), action: Deleting, old: live, message: "is being deleted"}
	now, known := r.cached(out.ref)
	switch {
	case known && (now == nil || now.GetUID() != live.GetUID()):
		return outcome{ref: out.ref, action: Deleted, old: live}
	case known && now.GetDeletionTimestamp() != nil:
		out.message = "is being deleted, " + deletionBlocker(now)
	}
	return out
}

func (r *setRun) failedDeletion(ref Ref, err error) outcome {
	e := r.cluster.objectErrorFor(ref, "delete", err)
	if apierrors.IsConflict(err) {
		e.Reason, e.Hint = ReasonConflict, "the object was replaced meanwhile; run again"
	}
	return outcome{ref: ref, action: Failed, message: e.Message, err: e}
}

// dependentOf returns an object of the inventory that needs the definition or namespace to be
// deleted, or nil.
func (r *setRun) dependentOf(e Entry) *Ref {
	var kind schema.GroupKind
	switch e.GroupKind() {
	case crdKind:
		crd, _ := r.cached(e.Ref)
		if crd == nil {
			return nil
		}
		kind.Group, _, _ = unstructured.NestedString(crd.Object, "spec", "group")
		kind.Kind, _, _ = unstructured.NestedString(crd.Object, "spec", "names", "kind")
	case namespaceKind:
		if ns, _ := r.cached(e.Ref); ns != nil && ns.GetAnnotations()[r.engine.keys.FinalizeDeletionAfter] != "" {
			return nil // its deletion is forced in time, whatever is stuck in it
		}
	default:
		return nil
	}
	for _, other := range r.sortedEntries() {
		if e.GroupKind() == crdKind && other.GroupKind() == kind || e.GroupKind() == namespaceKind && other.Namespace == e.Name {
			return &other.Ref
		}
	}
	return nil
}

// deleteClaims deletes the claims that match the selector of a StatefulSet.
func (r *setRun) deleteClaims(ctx context.Context, sts *unstructured.Unstructured) error {
	match, _, _ := unstructured.NestedStringMap(sts.Object, "spec", "selector", "matchLabels")
	if len(match) == 0 {
		return nil
	}
	gvr := schema.GroupVersionResource{Version: "v1", Resource: "persistentvolumeclaims"}
	claims, err := r.cluster.dynamic.Resource(gvr).Namespace(sts.GetNamespace()).List(ctx, metav1.ListOptions{
		LabelSelector: labels.SelectorFromSet(match).String()})
	if err != nil {
		return err
	}
	for i := range claims.Items {
		if _, err := r.cluster.delete(ctx, &claims.Items[i], metav1.DeletePropagationBackground, r.dry); err != nil {
			return err
		}
	}
	return nil
}

// finalizeOverdue removes the finalizers of an object whose deletion takes longer than its
// annotation allows (upstream: finalize-deletion-after). It ignores errors: the wait that follows
// reports them.
func (r *setRun) finalizeOverdue(ctx context.Context, live *unstructured.Unstructured) {
	if now, _ := r.cached(RefOf(live)); now != nil && now.GetUID() == live.GetUID() {
		live = now
	}
	after, err := time.ParseDuration(live.GetAnnotations()[r.engine.keys.FinalizeDeletionAfter])
	since := live.GetDeletionTimestamp()
	if err != nil || since == nil || r.dry || r.engine.clock.Now().Before(since.Add(after)) {
		return
	}
	if groupKindOf(live) == namespaceKind {
		bare := live.DeepCopy()
		_ = unstructured.SetNestedSlice(bare.Object, nil, "spec", "finalizers")
		gvr := schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
		_, _ = r.cluster.dynamic.Resource(gvr).Update(ctx, bare, metav1.UpdateOptions{}, "finalize")
		return
	}
	_, _ = r.cluster.mergePatch(ctx, RefOf(live), map[string]any{"metadata": map[string]any{"finalizers": nil}}, r.set.FieldManager, "")
}
