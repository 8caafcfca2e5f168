// SPDX-License-Identifier: Apache-2.0

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
func (r *setRun) applyPhase(ctx context.Context, phase []*desiredObject) {
	var wg sync.WaitGroup
	slots := make(chan struct{}, r.engine.parallel)
	for _, d := range phase {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			r.recordOutcome(r.applyObject(ctx, d))
		})
	}
	wg.Wait()
}

// applyObject applies one object.
func (r *setRun) applyObject(ctx context.Context, d *desiredObject) outcome {
	live, _ := r.cached(d.ref)
	switch {
	case ctx.Err() != nil:
		return r.failOutcome(d, ctx.Err())
	case hasTrueAnnotation(d.obj, live, r.engine.keys.Ignore):
		r.removeDescription(ctx, live)
		return outcome{ref: d.ref, action: Ignored, message: "annotation " + r.engine.keys.Ignore}
	}
	if e := r.cluster.CheckSize(d.obj); e != nil {
		return r.failOutcome(d, e)
	}
	if out, stop := r.checkPrerequisites(ctx, d, live); stop {
		return out
	}
	if live != nil && live.GetDeletionTimestamp() != nil {
		return r.recreateTerminating(ctx, d, live)
	}
	want := r.requestFor(d)
	// An applied object that is not cached may have lost the label that the cache selects by, or
	// its kind cannot be listed.
	if live == nil && (r.canOverruleAutoscaler(want) || r.hasFieldPolicy(d.ref.GroupKind()) || r.oldEntries[objectKeyOf(d.ref)].AppliedDigest != "") {
		existing, err := r.readObject(ctx, d.ref)
		if err != nil {
			return r.failOutcome(d, err)
		}
		if live = existing; live != nil {
			r.restoreEntry(d.ref)
		}
	}
	if live != nil {
		r.deferFields(&want, live)
		want.adjustToLive(live, r.set.FieldManager)
		if out, stop := r.failIfOwnedElsewhere(d, live); stop {
			return out
		}
		if r.isUnchanged(want, live) {
			if !r.dry {
				r.engine.tracker.secretSums.record(r.cluster, live, r.set.FieldManager)
			}
			r.recordHeld(d.ref, change.Reason{})
			out := outcome{ref: d.ref, action: Unchanged, immutableFields: want.immutableFields, handedOver: want.handedOver}
			return r.recordDroppedFields(out, r.droppedFieldsOf(want, live), live)
		}
	}
	if err := r.completeDeclaration(&want, d, live); err != nil {
		return r.failOutcome(d, err)
	}
	if err := r.admitChange(ctx, want, live); err != nil {
		return r.failOutcome(d, err)
	}
	if !r.dry {
		defer r.engine.tracker.beginWrite(r.cluster, objectKeyOf(d.ref))()
	}
	ctx, sent := r.startObjectSpan(ctx, d.ref)
	out := r.sendApply(ctx, want, live)
	sent(out)
	return out
}

// applyRequest is the next apply request for one object.
type applyRequest struct {
	*desiredObject
	toSend     *unstructured.Unstructured // the object adjusted to the live one
	createOnly []string
	// scalesUpFromZero means that declared replicas count if the live object has none: an
	// autoscaler sets replicas, but starts nothing.
	scalesUpFromZero bool
	appliedDigest    string
	immutableFields  []string // fields that are declared differently and cannot change
	neverApplied     bool     // it exists and we have never applied it

	declaredFields   map[string]string   // declared values of the fields that may be handed over
	handedOver       []change.HandedOver // fields that are handed over
	fieldsToTakeBack []string            // fields that are taken back from other managers
	takenBack        []string            // fields that were edited by managers of Set.TakeBackFrom
}

// adjustToLive adapts the object to be sent to the live one.
func (w *applyRequest) adjustToLive(live *unstructured.Unstructured, manager string) {
	createOnly := w.createOnly
	if w.scalesUpFromZero && isScaledToZero(live) {
		createOnly = slices.DeleteFunc(slices.Clone(createOnly), func(f string) bool { return f == createOnlyReplicas })
	}
	w.toSend, w.immutableFields = withLiveFields(w.obj, live, manager, createOnly)
}

func (r *setRun) requestFor(d *desiredObject) applyRequest {
	w := applyRequest{desiredObject: d, createOnly: r.engine.keys.createOnly(d.obj, r.isAutoscaled(d)), toSend: d.obj, appliedDigest: d.digest}
	_, declared, _ := unstructured.NestedFieldNoCopy(d.obj.Object, "spec", "replicas")
	w.scalesUpFromZero = declared && !isScaledToZero(d.obj) && d.obj.GetAnnotations()[r.engine.keys.PreserveReplicas] != "true"
	if len(w.createOnly) > 0 {
		w.appliedDigest = appliedDigest(d.obj, r.set.FieldManager, w.createOnly)
	}
	return w
}

// canOverruleAutoscaler reports whether a plain apply to an object that may exist would take values
// from an autoscaler.
func (r *setRun) canOverruleAutoscaler(w applyRequest) bool {
	if slices.Contains(w.createOnly, createOnlyResources) {
		return true
	}
	_, declared, _ := unstructured.NestedFieldNoCopy(w.obj.Object, "spec", "replicas")
	return declared && slices.Contains(w.createOnly, createOnlyReplicas)
}

// isUnchanged reports whether no request is needed: the desired object is the same as last time,
// and our fields are as the server left them.
func (r *setRun) isUnchanged(w applyRequest, live *unstructured.Unstructured) bool {
	old := r.oldEntries[objectKeyOf(w.ref)]
	if w.scalesUpFromZero && isScaledToZero(live) && slices.Contains(w.createOnly, createOnlyReplicas) {
		return false
	}
	if old.AppliedDigest == "" || old.AppliedDigest != w.appliedDigest || old.LiveDigest != r.liveDigest(live, w.createOnly) {
		return false
	}
	if w.ref.GroupKind() == secretKind && !hasSameSecretData(w.obj, live) {
		return false
	}
	return len(r.foreignMetadataPatch(w.obj, live)) == 0
}

func (r *setRun) liveDigest(live *unstructured.Unstructured, createOnly []string) string {
	r.mu.Lock()
	w := r.stores[live.GroupVersionKind()]
	r.mu.Unlock()
	if w == nil {
		return liveDigest(live, r.set.FieldManager, createOnly)
	}
	return w.digest(live, r.set.FieldManager, createOnly)
}

// checkPrerequisites handles an object that cannot be applied because its kind or namespace does
// not exist.
func (r *setRun) checkPrerequisites(ctx context.Context, d *desiredObject, live *unstructured.Unstructured) (outcome, bool) {
	if _, err := r.cluster.Mapping(ctx, d.ref.GVK()); err != nil {
		if out, is := r.outcomeOfUnservedKind(d, err); is {
			return out, true
		}
		return r.failOutcome(d, err), true
	}
	if live != nil || d.ref.Namespace == "" {
		return outcome{}, false
	}
	ns := Ref{APIVersion: "v1", Kind: "Namespace", Name: d.ref.Namespace}
	r.mu.Lock()
	made, ours := r.outcomes[objectKeyOf(ns)]
	r.mu.Unlock()
	switch {
	case !ours:
		return outcome{}, false
	case made.action == Created && r.dry:
		return outcome{ref: d.ref, action: Created, message: "its namespace is created by this set"}, true
	case made.action == Failed || made.action == Skipped:
		if existing, err := r.readObject(ctx, ns); err == nil && existing == nil {
			return r.skipOutcome(d, ns), true
		}
	}
	return outcome{}, false
}

func (r *setRun) skipOutcome(d *desiredObject, because Ref) outcome {
	r.mu.Lock()
	cause := r.outcomes[objectKeyOf(because)].message
	r.mu.Unlock()
	text := "not tried, because " + because.String() + " failed"
	if cause != "" {
		text += ": " + cause
	}
	return outcome{ref: d.ref, action: Skipped, message: text, err: &ObjectError{Cluster: r.cluster.name, Object: d.ref,
		Op: "apply", Reason: ReasonSkippedDependency, Message: text, Source: d.source, FailedDependency: &because}}
}

// recreateTerminating handles an object that someone deletes: a write to it would be lost. Once it
// no longer exists, this run or a later one creates it again.
func (r *setRun) recreateTerminating(ctx context.Context, d *desiredObject, live *unstructured.Unstructured) outcome {
	if r.dry {
		return outcome{ref: d.ref, action: Recreated, message: "it is being deleted, " + deletionBlocker(live)}
	}
	r.finalizeOverdue(ctx, live)
	if r.opts.NoWait {
		if left := r.deletingOutcome(live); left.action == Deleting {
			return left
		}
	} else if err := r.waitForDeletion(ctx, live, r.opts.DeleteTimeout); err != nil {
		return r.failOutcome(d, err)
	}
	defer r.engine.tracker.beginWrite(r.cluster, objectKeyOf(d.ref))()
	return r.sendApply(ctx, r.requestFor(d), nil)
}

// isAutoscaled reports whether a HorizontalPodAutoscaler, in the set or the cluster, targets the
// object. An autoscaler that leaves the set does not count if its workload stops.
func (r *setRun) isAutoscaled(d *desiredObject) bool {
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
			found = found || targets(hpa) && !(isScaledToZero(d.obj) && r.isPrunedNow(RefOf(hpa)))
		})
	}
	return found
}

// isPrunedNow reports whether this run prunes an object of the set.
func (r *setRun) isPrunedNow(ref Ref) bool {
	if _, ours := r.oldEntries[objectKeyOf(ref)]; !ours || r.opts.Repair || r.opts.NoPrune || r.opts.NoDelete {
		return false
	}
	return !r.isDesired(objectKeyOf(ref))
}

// sendApply applies an object and handles answers that need more than one request.
func (r *setRun) sendApply(ctx context.Context, w applyRequest, live *unstructured.Unstructured) outcome {
	old := r.oldEntries[objectKeyOf(w.ref)]
	// Someone changed our fields: we wanted the same before, or our fields are not as we left them.
	// Fields that were create-only and no longer are also come back to us.
	drifted := live != nil && old.AppliedDigest != "" && (old.AppliedDigest == w.appliedDigest || old.LiveDigest != "" && old.LiveDigest != r.liveDigest(live, old.CreateOnlyFields) ||
		slices.ContainsFunc(old.CreateOnlyFields, func(f string) bool { return !slices.Contains(w.createOnly, f) }))
	drifted = drifted || r.isUnrecorded(w.ref, live)
	takesBack := r.set.TakeBack && drifted
	opts := patchOptions{manager: r.set.FieldManager, force: r.isForced(w.desiredObject) || takesBack && r.set.TakeBackFrom == nil, dry: r.dry}
	w.neverApplied = live != nil && r.oldEntries[objectKeyOf(w.ref)].AppliedDigest == "" && ownedFields(live, r.set.FieldManager).Empty() && !isCreatedBy(live, r.set.FieldManager)
	if live != nil && r.isTakeoverNeeded(w.ref, live) {
		return r.takeOverFields(ctx, w, live, opts)
	}
	if live != nil {
		opts.uid = live.GetUID()
	}
	answer, created, err := r.patchWithRetry(ctx, w, opts)
	if isOtherObject(err) {
		// It was deleted meanwhile; the current object, if any, is applied as it is.
		if live, err = r.readFromServer(ctx, w.ref); err != nil {
			return r.failOutcome(w.desiredObject, err)
		}
		if opts.uid, w.toSend, w.immutableFields = "", w.obj, nil; live != nil {
			opts.uid = live.GetUID()
			w.adjustToLive(live, r.set.FieldManager)
		}
		answer, created, err = r.patchWithRetry(ctx, w, opts)
	}
	if w.canForce(err) {
		opts.force = true
		answer, created, err = r.patchWithRetry(ctx, w, opts)
	}
	err = w.withoutFieldsToTakeBack(err)
	if copies := r.copyManagers(live); isManagerConflict(err) && len(copies) > 0 && withoutManagers(err, func(m string) bool { return isCopyManager(copies, m) }) == nil {
		opts.force = true
		answer, created, err = r.patchWithRetry(ctx, w, opts)
	}
	if takesBack && r.set.TakeBackFrom != nil && isManagerConflict(err) {
		var taken []string
		if taken, err = splitConflict(err, r.set.TakeBackFrom); err == nil {
			opts.force = true
			answer, created, err = r.patchWithRetry(ctx, w, opts)
			w.takenBack = taken
		}
	}
	if live == nil && !created && (isManagerConflict(err) || isInvalidObject(err) || err == nil && r.isTakeoverNeeded(w.ref, answer)) {
		return r.adopt(ctx, w, err, opts, answer)
	}
	if isUndeclaredField(err) && live != nil && !r.dry {
		if _, err = r.migrateVersion(ctx, live, w.ref.APIVersion); err == nil {
			answer, created, err = r.patchWithRetry(ctx, w, opts)
		}
	}
	if isImmutable(err) && live == nil {
		// The object was not known to exist; its live values may help.
		if live, _ = r.readObject(ctx, w.ref); live != nil {
			w.adjustToLive(live, r.set.FieldManager)
			answer, created, err = r.patchWithRetry(ctx, w, opts)
		}
	}
	return r.finishApply(ctx, w, live, answer, created, err)
}

// isUnrecorded reports whether an object of the inventory is ours although the inventory has no
// digest of it. An API server with upstream's definition drops the digest, and only the process
// that wrote it knew it.
func (r *setRun) isUnrecorded(ref Ref, live *unstructured.Unstructured) bool {
	old, known := r.oldEntries[objectKeyOf(ref)]
	return live != nil && known && old.AppliedDigest == "" && !old.Deleting && r.isOwnOrigin(live.GetAnnotations()[r.engine.keys.Origin]) &&
		slices.ContainsFunc(managersOf(live), r.isOwnManager)
}

// readFromServer returns the object on the server, or nil.
func (r *setRun) readFromServer(ctx context.Context, ref Ref) (*unstructured.Unstructured, error) {
	live, err := r.cluster.GetLive(ctx, ref)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return live, err
}

// finishApply finishes an apply with the server's answer.
func (r *setRun) finishApply(ctx context.Context, w applyRequest, live, answer *unstructured.Unstructured, created bool, err error) outcome {
	// A CEL rule may report an immutable field in any words. A recreation shows whether the change
	// or the object is invalid; a dry run tries it before anything is deleted.
	if isImmutable(err) || live != nil && apierrors.IsInvalid(err) && !r.engine.protected[w.ref.GroupKind()] && hasTrueAnnotation(w.obj, live, r.engine.keys.DeleteOnInvalidUpdate) {
		return r.recreate(ctx, w, live, err)
	}
	if err == nil && !r.dry {
		answer, err = r.dropCopyOwnership(ctx, answer)
	}
	if err == nil {
		answer, err = r.removeForeignMetadata(ctx, w, answer)
	}
	if err != nil {
		return r.failOutcome(w.desiredObject, err)
	}
	return r.recordResponse(ctx, w, live, answer, created)
}

// recordResponse records the server's answer.
func (r *setRun) recordResponse(ctx context.Context, w applyRequest, live, answer *unstructured.Unstructured, created bool) outcome {
	out := outcome{ref: w.ref, action: Configured, immutableFields: w.immutableFields, handedOver: w.handedOver, takenBack: w.takenBack}
	switch {
	case created:
		out.action = Created
	case w.neverApplied || live == nil && r.oldEntries[objectKeyOf(w.ref)].AppliedDigest == "" && !isCreatedBy(answer, r.set.FieldManager):
		out.action = Adopted
	}
	if out.action == Adopted {
		out.message = adoptionNote
	}
	dropped := droppedFields(w.toSend, answer, r.set.FieldManager)
	if r.dry {
		if r.opts.OnDryRun != nil {
			r.opts.OnDryRun(w.ref, answer)
		}
		return r.recordDroppedFields(r.addChangedFields(ctx, out, live, answer), dropped, answer)
	}
	if live != nil && live.GetResourceVersion() == answer.GetResourceVersion() {
		out.action = Unchanged
	} else if len(out.immutableFields) > 0 {
		out.message = joinNotes(out.message, immutableFieldsNote(out.immutableFields))
	}
	entry := Entry{Ref: w.ref, Labels: w.obj.GetLabels(), Annotations: r.inventoryAnnotations(w.ref, w.obj), AppliedDigest: w.appliedDigest,
		LiveDigest: r.liveDigest(answer, w.createOnly), CreateOnlyFields: w.createOnly, DeclaredFields: r.declaredValues(w), Source: r.sourceFile(w.source)}
	r.mu.Lock()
	r.entries[objectKeyOf(w.ref)] = entry
	r.mu.Unlock()
	r.engine.tracker.secretSums.record(r.cluster, answer, r.set.FieldManager)
	r.engine.tracker.recordApplied(r.cluster, r.set.Name, r.set.FieldManager, entry)
	return r.recordDroppedFields(out, dropped, answer)
}

// addChangedFields adds the fields that would differ to the outcome of a dry run.
func (r *setRun) addChangedFields(ctx context.Context, out outcome, live, answer *unstructured.Unstructured) outcome {
	if out.action == Created {
		return out
	}
	if live == nil {
		existing, err := r.readObject(ctx, out.ref)
		if err != nil || existing == nil {
			return out
		}
		live = existing
	}
	out.fields, out.old, out.new = changedFields(live, answer), live, answer
	if len(out.fields) == 0 && out.action == Configured {
		out.action = Unchanged
		if len(out.immutableFields) > 0 {
			out.action, out.message = Retained, immutableFieldsNote(out.immutableFields)
		}
	}
	return out
}

// immutableFieldsNote names the declared fields that cannot be applied.
func immutableFieldsNote(fields []string) string {
	return strings.Join(fields, ", ") + " cannot change on a live object and keeps its value, which differs from the declaration"
}

// patchWithRetry is patchApply with retries for resources that this run just installed: kinds that
// the server does not serve yet, and webhooks that are starting.
func (r *setRun) patchWithRetry(ctx context.Context, w applyRequest, opts patchOptions) (*unstructured.Unstructured, bool, error) {
	began := r.engine.clock.Now()
	for {
		answer, created, err := r.cluster.patchApply(ctx, w.toSend, opts)
		var patience, pause time.Duration
		switch {
		case r.crds[w.ref.GroupKind()] != nil && apierrors.IsNotFound(err) && !isNamespaceMissing(err):
			patience, pause = 10*time.Second, 200*time.Millisecond
		case r.isWebhookStarting(err):
			patience, pause = r.opts.ReadyTimeout, webhookRetryInterval
		}
		if isInvalidObject(err) {
			return r.retryWithoutStaleFields(ctx, w, opts, err)
		}
		if patience == 0 || r.engine.clock.Since(began) > patience {
			return answer, created, err
		}
		if err := r.pause(ctx, pause); err != nil {
			return nil, false, err
		}
	}
}

func (r *setRun) pause(ctx context.Context, d time.Duration) error {
	timer := r.engine.clock.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C():
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// propagationPolicy is upstream's: foreground for workloads, so that their pods are deleted with
// them.
func propagationPolicy(ref Ref) metav1.DeletionPropagation {
	switch ref.GroupKind().Group {
	case "apps", "extensions", "batch":
		return metav1.DeletePropagationForeground
	}
	return metav1.DeletePropagationBackground
}

// isCreatedBy reports whether only manager has written an object, apart from its status: manager
// created it itself, by a request other than an apply.
func isCreatedBy(o *unstructured.Unstructured, manager string) bool {
	made := false
	for _, entry := range managersOf(o) {
		if entry.Subresource == "" && entry.Manager != manager {
			return false
		}
		made = made || entry.Subresource == ""
	}
	return made
}
