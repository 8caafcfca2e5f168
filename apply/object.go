package apply

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pergola-dev/pergola/change"
)

// applyPhase applies the objects of one phase concurrently, started in their order.
func (r *run) applyPhase(ctx context.Context, phase []*desired) {
	var wg sync.WaitGroup
	slots := make(chan struct{}, r.e.parallel)
	for _, d := range phase {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			r.finished(r.one(ctx, d))
		})
	}
	wg.Wait()
}

// one applies one object.
func (r *run) one(ctx context.Context, d *desired) outcome {
	live, _ := r.live(d.ref)
	switch {
	case ctx.Err() != nil:
		return r.fail(d, ctx.Err())
	case flagged(d.obj, live, r.e.keys.Ignore):
		r.undescribe(ctx, live)
		return outcome{ref: d.ref, action: Ignored, message: "annotation " + r.e.keys.Ignore}
	}
	if e := r.c.CheckSize(d.obj); e != nil {
		return r.fail(d, e)
	}
	if out, stop := r.missing(ctx, d, live); stop {
		return out
	}
	if live != nil && live.GetDeletionTimestamp() != nil {
		return r.terminating(ctx, d, live)
	}
	want := r.wish(d)
	// An applied object that is not cached may have lost the label that the cache selects by, or
	// its kind cannot be listed.
	if live == nil && (r.mayOverrule(want) || r.yields(d.ref.GroupKind()) || r.old[keyOf(d.ref)].Applied != "") {
		existing, err := r.read(ctx, d.ref)
		if err != nil {
			return r.fail(d, err)
		}
		if live = existing; live != nil {
			r.isThere(d.ref)
		}
	}
	if live != nil {
		r.yield(&want, live)
		want.adjust(live, r.set.FieldManager)
		if out, stop := r.takenOver(d, live); stop {
			return out
		}
		if r.isUnchanged(want, live) {
			if !r.dry {
				r.e.tracked.secrets.note(r.c, live, r.set.FieldManager)
			}
			r.noteHeld(d.ref, change.Reason{})
			out := outcome{ref: d.ref, action: Unchanged, kept: want.kept, handed: want.handed}
			return r.noteDropped(out, r.dropped(want, live), live)
		}
	}
	if err := r.complete(&want, d, live); err != nil {
		return r.fail(d, err)
	}
	if err := r.admitted(ctx, want, live); err != nil {
		return r.fail(d, err)
	}
	if !r.dry {
		defer r.e.tracked.writing(r.c, keyOf(d.ref))()
	}
	ctx, sent := r.tracedObject(ctx, d.ref)
	out := r.send(ctx, want, live)
	sent(out)
	return out
}

// wanted is the next apply request for one object.
type wanted struct {
	*desired
	send       *unstructured.Unstructured // the object adjusted to the live one
	createOnly []string
	// starts means that declared replicas count if the live object has none: an autoscaler sets
	// replicas, but starts nothing.
	starts  bool
	applied string
	kept    []string // fields that are declared differently and cannot change
	foreign bool     // it exists and we have never applied it

	fields    map[string]string   // declared values of the fields that may be handed over
	handed    []change.HandedOver // fields that are handed over
	reclaimed []string            // fields that are taken back from other managers
	takenBack []string            // fields that were edited by managers of Set.TakeBackFrom
}

// adjust adapts the object to be sent to the live one.
func (w *wanted) adjust(live *unstructured.Unstructured, manager string) {
	createOnly := w.createOnly
	if w.starts && hasStopped(live) {
		createOnly = slices.DeleteFunc(slices.Clone(createOnly), func(f string) bool { return f == onlyReplicas })
	}
	w.send, w.kept = adjust(w.obj, live, manager, createOnly)
}

func (r *run) wish(d *desired) wanted {
	w := wanted{desired: d, createOnly: r.e.keys.createOnly(d.obj, r.scaled(d)), send: d.obj, applied: d.digest}
	_, declared, _ := unstructured.NestedFieldNoCopy(d.obj.Object, "spec", "replicas")
	w.starts = declared && !hasStopped(d.obj) && d.obj.GetAnnotations()[r.e.keys.PreserveReplicas] != "true"
	if len(w.createOnly) > 0 {
		w.applied = appliedDigest(d.obj, r.set.FieldManager, w.createOnly)
	}
	return w
}

// mayOverrule reports whether a plain apply to an object that may exist would take values from an
// autoscaler.
func (r *run) mayOverrule(w wanted) bool {
	if slices.Contains(w.createOnly, onlyResources) {
		return true
	}
	_, declared, _ := unstructured.NestedFieldNoCopy(w.obj.Object, "spec", "replicas")
	return declared && slices.Contains(w.createOnly, onlyReplicas)
}

// isUnchanged reports whether no request is needed: the desired object is the same as last time,
// and our fields are as the server left them.
func (r *run) isUnchanged(w wanted, live *unstructured.Unstructured) bool {
	old := r.old[keyOf(w.ref)]
	if w.starts && hasStopped(live) && slices.Contains(w.createOnly, onlyReplicas) {
		return false
	}
	if old.Applied == "" || old.Applied != w.applied || old.Live != r.liveDigest(live, w.createOnly) {
		return false
	}
	if w.ref.GroupKind() == secretKind && !sameSecretData(w.obj, live) {
		return false
	}
	return len(r.foreignMetadata(w.obj, live)) == 0
}

func (r *run) liveDigest(live *unstructured.Unstructured, createOnly []string) string {
	r.mu.Lock()
	w := r.stores[live.GroupVersionKind()]
	r.mu.Unlock()
	if w == nil {
		return liveDigest(live, r.set.FieldManager, createOnly)
	}
	return w.digest(live, r.set.FieldManager, createOnly)
}

// missing handles an object that cannot be applied because its kind or namespace does not exist.
func (r *run) missing(ctx context.Context, d *desired, live *unstructured.Unstructured) (outcome, bool) {
	if _, err := r.c.Mapping(ctx, d.ref.GVK()); err != nil {
		if out, is := r.unserved(d, err); is {
			return out, true
		}
		return r.fail(d, err), true
	}
	if live != nil || d.ref.Namespace == "" {
		return outcome{}, false
	}
	ns := Ref{APIVersion: "v1", Kind: "Namespace", Name: d.ref.Namespace}
	r.mu.Lock()
	made, ours := r.outcomes[keyOf(ns)]
	r.mu.Unlock()
	switch {
	case !ours:
		return outcome{}, false
	case made.action == Created && r.dry:
		return outcome{ref: d.ref, action: Created, message: "its namespace is created by this set"}, true
	case made.action == Failed || made.action == Skipped:
		if existing, err := r.read(ctx, ns); err == nil && existing == nil {
			return r.skip(d, ns), true
		}
	}
	return outcome{}, false
}

func (r *run) skip(d *desired, because Ref) outcome {
	r.mu.Lock()
	cause := r.outcomes[keyOf(because)].message
	r.mu.Unlock()
	text := "not tried, because " + because.String() + " failed"
	if cause != "" {
		text += ": " + cause
	}
	return outcome{ref: d.ref, action: Skipped, message: text, err: &ObjectError{Cluster: r.c.name, Object: d.ref,
		Op: "apply", Reason: SkippedDependency, Message: text, Source: d.source, Because: &because}}
}

// terminating handles an object that someone deletes: a write to it would be lost. Once it no
// longer exists, this run or a later one creates it again.
func (r *run) terminating(ctx context.Context, d *desired, live *unstructured.Unstructured) outcome {
	if r.dry {
		return outcome{ref: d.ref, action: Recreated, message: "it is being deleted, " + waitsFor(live)}
	}
	r.finalizeOverdue(ctx, live)
	if r.opts.NoWait {
		if left := r.leaving(live); left.action == Deleting {
			return left
		}
	} else if err := r.waitGone(ctx, live, r.opts.DeleteTimeout); err != nil {
		return r.fail(d, err)
	}
	defer r.e.tracked.writing(r.c, keyOf(d.ref))()
	return r.send(ctx, r.wish(d), nil)
}

// scaled reports whether a HorizontalPodAutoscaler, in the set or the cluster, targets the object.
// An autoscaler that leaves the set does not count if its workload stops.
func (r *run) scaled(d *desired) bool {
	if gk := d.ref.GroupKind(); gk != deploymentKind && gk != statefulSet {
		return false
	}
	targets := func(hpa *unstructured.Unstructured) bool {
		kind, _, _ := unstructured.NestedString(hpa.Object, "spec", "scaleTargetRef", "kind")
		name, _, _ := unstructured.NestedString(hpa.Object, "spec", "scaleTargetRef", "name")
		return hpa.GetNamespace() == d.ref.Namespace && kind == d.ref.Kind && name == d.ref.Name
	}
	for _, other := range r.desired {
		if other.ref.GroupKind() == hpaKind && targets(other.obj) {
			return true
		}
	}
	r.mu.Lock()
	w := r.stores[hpaKind.WithVersion("v2")]
	r.mu.Unlock()
	found := false
	if w != nil {
		w.list(func(hpa *unstructured.Unstructured) {
			found = found || targets(hpa) && !(hasStopped(d.obj) && r.leavesNow(RefOf(hpa)))
		})
	}
	return found
}

// leavesNow reports whether this run prunes an object of the set.
func (r *run) leavesNow(ref Ref) bool {
	if _, ours := r.old[keyOf(ref)]; !ours || r.opts.Repair || r.opts.NoPrune || r.opts.NoDelete {
		return false
	}
	return !r.isDesired(keyOf(ref))
}

// send applies an object and handles answers that need more than one request.
func (r *run) send(ctx context.Context, w wanted, live *unstructured.Unstructured) outcome {
	old := r.old[keyOf(w.ref)]
	// Somebody changed our fields: we wanted the same before, or our fields are not as we left
	// them. Fields that were create-only and no longer are also come back to us.
	drifted := live != nil && old.Applied != "" && (old.Applied == w.applied || old.Live != "" && old.Live != r.liveDigest(live, old.CreateOnly) ||
		slices.ContainsFunc(old.CreateOnly, func(f string) bool { return !slices.Contains(w.createOnly, f) }))
	drifted = drifted || r.isUnrecorded(w.ref, live)
	takesBack := r.set.TakeBack && drifted
	opts := patchOptions{manager: r.set.FieldManager, force: r.forces(w.desired) || takesBack && r.set.TakeBackFrom == nil, dry: r.dry}
	w.foreign = live != nil && r.old[keyOf(w.ref)].Applied == "" && ownedFields(live, r.set.FieldManager).Empty() && !madeBy(live, r.set.FieldManager)
	if live != nil && r.needsTakeover(w.ref, live) {
		return r.takeOver(ctx, w, live, opts)
	}
	if live != nil {
		opts.uid = live.GetUID()
	}
	answer, created, err := r.patchFresh(ctx, w, opts)
	if isOtherObject(err) {
		// It was deleted meanwhile; the current object, if any, is applied as it is.
		if live, err = r.current(ctx, w.ref); err != nil {
			return r.fail(w.desired, err)
		}
		if opts.uid, w.send, w.kept = "", w.obj, nil; live != nil {
			opts.uid = live.GetUID()
			w.adjust(live, r.set.FieldManager)
		}
		answer, created, err = r.patchFresh(ctx, w, opts)
	}
	if w.mayForce(err) {
		opts.force = true
		answer, created, err = r.patchFresh(ctx, w, opts)
	}
	err = w.contested(err)
	if copies := r.copies(live); isManagerConflict(err) && len(copies) > 0 && withoutManagers(err, func(m string) bool { return isCopy(copies, m) }) == nil {
		opts.force = true
		answer, created, err = r.patchFresh(ctx, w, opts)
	}
	if takesBack && r.set.TakeBackFrom != nil && isManagerConflict(err) {
		var taken []string
		if taken, err = takenBack(err, r.set.TakeBackFrom); err == nil {
			opts.force = true
			answer, created, err = r.patchFresh(ctx, w, opts)
			w.takenBack = taken
		}
	}
	if live == nil && !created && (isManagerConflict(err) || isRefused(err) || err == nil && r.needsTakeover(w.ref, answer)) {
		return r.adopt(ctx, w, err, opts, answer)
	}
	if isUndeclaredField(err) && live != nil && !r.dry {
		if _, err = r.migrateVersion(ctx, live, w.ref.APIVersion); err == nil {
			answer, created, err = r.patchFresh(ctx, w, opts)
		}
	}
	if isImmutable(err) && live == nil {
		// The object was not known to exist; its live values may help.
		if live, _ = r.read(ctx, w.ref); live != nil {
			w.adjust(live, r.set.FieldManager)
			answer, created, err = r.patchFresh(ctx, w, opts)
		}
	}
	return r.answered(ctx, w, live, answer, created, err)
}

// isUnrecorded reports whether an object of the inventory is ours although the inventory has no
// digest of it. An API server with upstream's definition drops the digest, and only the process
// that wrote it knew it.
func (r *run) isUnrecorded(ref Ref, live *unstructured.Unstructured) bool {
	old, known := r.old[keyOf(ref)]
	return live != nil && known && old.Applied == "" && !old.Leaving && r.names(live.GetAnnotations()[r.e.keys.Origin]) &&
		slices.ContainsFunc(managersOf(live), r.isOurs)
}

// current returns the object on the server, or nil.
func (r *run) current(ctx context.Context, ref Ref) (*unstructured.Unstructured, error) {
	live, err := r.c.GetLive(ctx, ref)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return live, err
}

// answered finishes an apply with the server's answer.
func (r *run) answered(ctx context.Context, w wanted, live, answer *unstructured.Unstructured, created bool, err error) outcome {
	// A CEL rule may report an immutable field in any words. A recreation shows whether the change
	// or the object is invalid; a dry run tries it before anything is deleted.
	if isImmutable(err) || live != nil && apierrors.IsInvalid(err) && !r.e.protected[w.ref.GroupKind()] && flagged(w.obj, live, r.e.keys.DeleteOnInvalidUpdate) {
		return r.recreate(ctx, w, live, err)
	}
	if err == nil && !r.dry {
		answer, err = r.disown(ctx, answer)
	}
	if err == nil {
		answer, err = r.dropForeign(ctx, w, answer)
	}
	if err != nil {
		return r.fail(w.desired, err)
	}
	return r.sent(ctx, w, live, answer, created)
}

// sent records the server's answer.
func (r *run) sent(ctx context.Context, w wanted, live, answer *unstructured.Unstructured, created bool) outcome {
	out := outcome{ref: w.ref, action: Configured, kept: w.kept, handed: w.handed, takenBack: w.takenBack}
	switch {
	case created:
		out.action = Created
	case w.foreign || live == nil && r.old[keyOf(w.ref)].Applied == "" && !madeBy(answer, r.set.FieldManager):
		out.action = Adopted
	}
	if out.action == Adopted {
		out.message = adoption
	}
	dropped := droppedFields(w.send, answer, r.set.FieldManager)
	if r.dry {
		if r.opts.Foreseen != nil {
			r.opts.Foreseen(w.ref, answer)
		}
		return r.noteDropped(r.compared(ctx, out, live, answer), dropped, answer)
	}
	if live != nil && live.GetResourceVersion() == answer.GetResourceVersion() {
		out.action = Unchanged
	} else if len(out.kept) > 0 {
		out.message = joinNotes(out.message, keptNote(out.kept))
	}
	entry := Entry{Ref: w.ref, Labels: w.obj.GetLabels(), Annotations: r.inventoried(w.ref, w.obj), Applied: w.applied,
		Live: r.liveDigest(answer, w.createOnly), CreateOnly: w.createOnly, Fields: r.declared(w), Source: r.fileOf(w.source)}
	r.mu.Lock()
	r.entries[keyOf(w.ref)] = entry
	r.mu.Unlock()
	r.e.tracked.secrets.note(r.c, answer, r.set.FieldManager)
	r.e.tracked.set(r.c, r.set.Name, r.set.FieldManager, entry)
	return r.noteDropped(out, dropped, answer)
}

// compared adds the fields that would differ to the outcome of a dry run.
func (r *run) compared(ctx context.Context, out outcome, live, answer *unstructured.Unstructured) outcome {
	if out.action == Created {
		return out
	}
	if live == nil {
		existing, err := r.read(ctx, out.ref)
		if err != nil || existing == nil {
			return out
		}
		live = existing
	}
	out.fields, out.old, out.new = differences(live, answer), live, answer
	if len(out.fields) == 0 && out.action == Configured {
		out.action = Unchanged
		if len(out.kept) > 0 {
			out.action, out.message = Kept, keptNote(out.kept)
		}
	}
	return out
}

// keptNote names the declared fields that cannot be applied.
func keptNote(fields []string) string {
	return strings.Join(fields, ", ") + " is declared otherwise, cannot change on a live object and stays as it is"
}

// patchFresh is patchApply with retries for resources that this run just installed: kinds that the
// server does not serve yet, and webhooks that are starting.
func (r *run) patchFresh(ctx context.Context, w wanted, opts patchOptions) (*unstructured.Unstructured, bool, error) {
	began := r.e.clock.Now()
	for {
		answer, created, err := r.c.patchApply(ctx, w.send, opts)
		var patience, pause time.Duration
		switch {
		case r.crds[w.ref.GroupKind()] != nil && apierrors.IsNotFound(err) && !isNamespaceMissing(err):
			patience, pause = 10*time.Second, 200*time.Millisecond
		case r.isStarting(err):
			patience, pause = r.opts.CRDTimeout, startPause
		}
		if isRefused(err) {
			return r.withoutLeftovers(ctx, w, opts, err)
		}
		if patience == 0 || r.e.clock.Since(began) > patience {
			return answer, created, err
		}
		if err := r.pause(ctx, pause); err != nil {
			return nil, false, err
		}
	}
}

func (r *run) pause(ctx context.Context, d time.Duration) error {
	timer := r.e.clock.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C():
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// propagation is upstream's: foreground for workloads, so that their pods are deleted with them.
func propagation(ref Ref) metav1.DeletionPropagation {
	switch ref.GroupKind().Group {
	case "apps", "extensions", "batch":
		return metav1.DeletePropagationForeground
	}
	return metav1.DeletePropagationBackground
}

// madeBy reports whether only manager has written an object, apart from its status: manager created
// it itself, by a request other than an apply.
func madeBy(o *unstructured.Unstructured, manager string) bool {
	made := false
	for _, entry := range managersOf(o) {
		if entry.Subresource == "" && entry.Manager != manager {
			return false
		}
		made = made || entry.Subresource == ""
	}
	return made
}
