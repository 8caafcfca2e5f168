// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
	"github.com/pergola-dev/pergola/change/redact"
)

// recreate handles an update that only immutable fields forbid: if the object allows it, the object
// is deleted and created again in the same run. Otherwise the error is reported.
func (r *setRun) recreate(ctx context.Context, w applyRequest, live *unstructured.Unstructured, rejected error) outcome {
	if live == nil {
		existing, err := r.cluster.GetLive(ctx, w.ref)
		if err != nil {
			return r.failOutcome(w.desiredObject, rejected)
		}
		live = existing
	}
	if !r.canRecreate(w, live) {
		return r.immutableOutcome(w, live, rejected)
	}
	if r.opts.HoldRecreate != nil {
		if reason := r.opts.HoldRecreate(r.entryOf(w.ref)); reason != nil {
			r.recordHeld(w.ref, *reason)
			return outcome{ref: w.ref, action: HeldBack, message: "recreation is held: " + reason.String()}
		}
	}
	if err := r.cluster.validateCreate(ctx, w.obj, r.set.FieldManager); err != nil {
		return r.failOutcome(w.desiredObject, err)
	}
	out := outcome{ref: w.ref, action: Recreated, message: "immutable: " + strings.Join(invalidFields(rejected), ", ")}
	if r.dry {
		out.fields = changedFieldsAt(live, w.toSend, invalidFields(rejected))
		out.old, out.new = live, w.toSend
		return out
	}
	how := propagationPolicy(w.ref)
	if p := w.obj.GetAnnotations()[r.engine.keys.InvalidUpdateDeletion]; p != "" {
		how = metav1.DeletionPropagation(p)
	}
	gone, err := r.cluster.delete(ctx, live, how, false)
	if err != nil {
		return r.failOutcome(w.desiredObject, err)
	}
	if failed := r.createAgain(ctx, w, live, gone); failed != nil {
		out = *failed
	}
	// its deletion has begun, whether this run or a later one creates it again, see terminating
	out.deleteRequested = true
	return out
}

// createAgain creates an object as soon as the old one no longer exists. It returns nil, or the
// outcome if that is not done.
func (r *setRun) createAgain(ctx context.Context, w applyRequest, before *unstructured.Unstructured, gone bool) *outcome {
	failed := func(err error) *outcome {
		out := r.failOutcome(w.desiredObject, err)
		return &out
	}
	switch {
	case gone:
	case r.opts.NoWait:
		if left := r.deletingOutcome(before); left.action == Deleting {
			return &left
		}
	default:
		if err := r.waitForDeletion(ctx, before, r.opts.DeleteTimeout); err != nil {
			return failed(err)
		}
	}
	answer, created, err := r.patchWithRetry(ctx, applyRequest{desiredObject: w.desiredObject, toSend: w.obj}, patchOptions{manager: r.set.FieldManager, force: r.isForced(w.desiredObject)})
	if err != nil {
		return failed(err)
	}
	if done := r.recordResponse(ctx, w, nil, answer, created); done.err != nil {
		return &done
	}
	return nil
}

// immutableOutcome returns the outcome for an object with changed immutable fields, and names these
// fields.
func (r *setRun) immutableOutcome(w applyRequest, live *unstructured.Unstructured, rejected error) outcome {
	out := r.failOutcome(w.desiredObject, rejected)
	if out.err.Reason != ReasonImmutable {
		return out
	}
	changed := r.changedPathsBelow(w, live, out.err.Fields)
	if len(changed) > maxNotedFields {
		changed = append(changed[:maxNotedFields], "…")
	}
	out.message = strings.Join(out.err.Fields, ", ") + " cannot change on a live object"
	if len(changed) > 0 {
		out.message += ", and the declaration changes " + strings.Join(changed, ", ")
	}
	if why := firstCauseMessage(rejected); why != "" && r.engine.protected[w.ref.GroupKind()] {
		out.message += ": " + why
	}
	out.err.Message = out.message
	if r.engine.protected[w.ref.GroupKind()] {
		out.err.Hint = "keep its value: objects of this kind hold data or belong to others, and are never recreated"
	}
	return out
}

// firstCauseMessage returns the first line of the server's message about a field, without values.
func firstCauseMessage(rejected error) string {
	status, ok := statusOf(rejected)
	if !ok || status.Details == nil || len(status.Details.Causes) == 0 {
		return ""
	}
	line, _, _ := strings.Cut(withoutDump(status.Details.Causes[0].Message), "\n")
	return redact.Text(strings.TrimSpace(line))
}

// changedPathsBelow returns the paths below some fields at which a declaration differs from the
// live object. Fields that only the server sets do not count; fields that we own and no longer
// declare do.
func (r *setRun) changedPathsBelow(w applyRequest, live *unstructured.Unstructured, fields []string) []string {
	var out []string
	for _, f := range changedFieldsAt(live, w.toSend, fields) {
		if f.New != nil || f.Hidden {
			out = append(out, f.Path)
		}
	}
	for _, f := range driftedFields(live, w.toSend, r.set.FieldManager, w.createOnly) {
		below := slices.ContainsFunc(fields, func(field string) bool { return f.Path == field || strings.HasPrefix(f.Path, field+".") })
		if below && f.New == nil && !f.Hidden {
			out = append(out, strings.ReplaceAll(f.Path, `"`, ""))
		}
	}
	return out
}

// canRecreate reports whether the annotation of the declared or the live object allows a
// recreation. ConfigMaps and Secrets that are immutable as a whole need no annotation.
func (r *setRun) canRecreate(w applyRequest, live *unstructured.Unstructured) bool {
	gk := w.ref.GroupKind()
	if r.engine.protected[gk] {
		return false
	}
	if hasTrueAnnotation(w.obj, live, r.engine.keys.DeleteOnInvalidUpdate) {
		return true
	}
	immutable, _, _ := unstructured.NestedBool(live.Object, "immutable")
	return immutable && (gk == secretKind || gk == configMapKind)
}

// validateCreate asks the server whether the object could be created, so that nothing is deleted
// that cannot come back. AlreadyExists is the expected answer.
func (c *Cluster) validateCreate(ctx context.Context, o *unstructured.Unstructured, manager string) error {
	mapping, err := c.Mapping(ctx, o.GroupVersionKind())
	if err != nil {
		return err
	}
	body, err := encodeBody(o)
	if err != nil {
		return err
	}
	path := pathOf(mapping, o.GetNamespace(), o.GetName())
	err = c.rest.Post().AbsPath(path[:len(path)-1]...).Param("dryRun", metav1.DryRunAll).
		Param("fieldManager", manager).SetHeader("Content-Type", "application/json").Body(body).Do(withoutLogging(ctx)).Error()
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

func invalidFields(err error) []string {
	e := &ObjectError{Err: err}
	status, _ := statusOf(err)
	explainInvalid(e, status)
	return e.Fields
}

// waitForDeletion waits until an object, identified by its UID, no longer exists.
func (r *setRun) waitForDeletion(ctx context.Context, o *unstructured.Unstructured, timeout time.Duration) error {
	wake := make(chan struct{}, 1)
	ref := RefOf(o)
	stop := r.cluster.OnChange(func(e ChangeEvent) {
		if objectKeyOf(e.Ref) == objectKeyOf(ref) {
			select {
			case wake <- struct{}{}:
			default:
			}
		}
	})
	defer stop()
	deadline := r.engine.clock.NewTimer(timeout)
	defer deadline.Stop()
	latest := o
	for {
		now, known := r.cached(ref)
		if !known {
			existing, err := r.cluster.GetLive(ctx, ref)
			if err != nil && !apierrors.IsNotFound(err) {
				return err
			}
			now = existing
			if apierrors.IsNotFound(err) {
				now = nil
			}
		}
		if now == nil || now.GetUID() != o.GetUID() {
			return nil
		}
		latest = now
		poll := r.pollTimer(known)
		select {
		case <-wake:
		case <-poll:
		case <-ctx.Done():
			return ctx.Err()
		case <-deadline.C():
			return r.stuckError(latest)
		}
	}
}

func (r *setRun) pollTimer(cached bool) <-chan time.Time {
	if cached {
		return nil
	}
	return r.engine.clock.After(500 * time.Millisecond)
}

// stuckError returns the error for an object whose deletion does not finish.
func (r *setRun) stuckError(o *unstructured.Unstructured) *ObjectError {
	return &ObjectError{Cluster: r.cluster.name, Object: RefOf(o), Op: "delete", Reason: ReasonStuckDeletion, Message: "it is being deleted and " + deletionBlocker(o), Hint: r.cluster.stuckHint(o)}
}

// stuckHint returns the hint for an object whose deletion does not finish. An object that a Garden
// or Shoot refers to stays while the reference exists. Someone deleted an object in use, and a
// deletion cannot be undone.
func (c *Cluster) stuckHint(o *unstructured.Unstructured) string {
	if f := o.GetFinalizers(); len(f) == 1 && f[0] == gardencorev1beta1.ReferenceProtectionFinalizer {
		return c.RewriteKubectlOrNameCluster(fmt.Sprintf("it stays while something refers to it; to recreate it at once, remove the finalizer: kubectl patch %s --type merge -p '{\"metadata\":{\"finalizers\":null}}'",
			KubectlName(RefOf(o))))
	}
	return "find the controller that should remove the finalizer; nothing else waits for this object"
}

// deletionBlocker says why a deleted object still exists.
func deletionBlocker(o *unstructured.Unstructured) string {
	if f := o.GetFinalizers(); len(f) > 0 {
		return "waits for finalizer " + strings.Join(f, ", ")
	}
	if f, _, _ := unstructured.NestedStringSlice(o.Object, "spec", "finalizers"); len(f) > 0 && groupKindOf(o) == namespaceKind {
		if what := namespaceDeletionBlocker(o); what != "" {
			return "waits for its content to be deleted: " + what
		}
		return "waits for its content to be deleted"
	}
	if g := o.GetDeletionGracePeriodSeconds(); g != nil && *g > 0 {
		return fmt.Sprintf("ends within its grace period of %d s", *g)
	}
	return "waits to be removed"
}
