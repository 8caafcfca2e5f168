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
func (r *run) recreate(ctx context.Context, w wanted, live *unstructured.Unstructured, rejected error) outcome {
	if live == nil {
		existing, err := r.c.GetLive(ctx, w.ref)
		if err != nil {
			return r.fail(w.desired, rejected)
		}
		live = existing
	}
	if !r.mayRecreate(w, live) {
		return r.immutable(w, live, rejected)
	}
	if r.opts.HoldRecreate != nil {
		if reason := r.opts.HoldRecreate(r.entryOf(w.ref)); reason != nil {
			r.noteHeld(w.ref, *reason)
			return outcome{ref: w.ref, action: HeldBack, message: "recreation is held: " + reason.String()}
		}
	}
	if err := r.c.validateCreate(ctx, w.obj, r.set.FieldManager); err != nil {
		return r.fail(w.desired, err)
	}
	out := outcome{ref: w.ref, action: Recreated, message: "immutable: " + strings.Join(invalidFields(rejected), ", ")}
	if r.dry {
		out.fields = differencesAt(live, w.send, invalidFields(rejected))
		out.old, out.new = live, w.send
		return out
	}
	how := propagation(w.ref)
	if p := w.obj.GetAnnotations()[r.e.keys.InvalidUpdateDeletion]; p != "" {
		how = metav1.DeletionPropagation(p)
	}
	gone, err := r.c.delete(ctx, live, how, false)
	if err != nil {
		return r.fail(w.desired, err)
	}
	if failed := r.remake(ctx, w, live, gone); failed != nil {
		out = *failed
	}
	// its deletion has begun, whether this run or a later one creates it again, see terminating
	out.told = true
	return out
}

// remake creates an object as soon as the old one no longer exists. It returns nil, or the outcome
// if that is not done.
func (r *run) remake(ctx context.Context, w wanted, before *unstructured.Unstructured, gone bool) *outcome {
	failed := func(err error) *outcome {
		out := r.fail(w.desired, err)
		return &out
	}
	switch {
	case gone:
	case r.opts.NoWait:
		if left := r.leaving(before); left.action == Deleting {
			return &left
		}
	default:
		if err := r.waitGone(ctx, before, r.opts.DeleteTimeout); err != nil {
			return failed(err)
		}
	}
	answer, created, err := r.patchFresh(ctx, wanted{desired: w.desired, send: w.obj}, patchOptions{manager: r.set.FieldManager, force: r.forces(w.desired)})
	if err != nil {
		return failed(err)
	}
	if done := r.sent(ctx, w, nil, answer, created); done.err != nil {
		return &done
	}
	return nil
}

// immutable returns the outcome for an object with changed immutable fields, and names these
// fields.
func (r *run) immutable(w wanted, live *unstructured.Unstructured, rejected error) outcome {
	out := r.fail(w.desired, rejected)
	if out.err.Reason != Immutable {
		return out
	}
	changed := r.changedAt(w, live, out.err.Fields)
	if len(changed) > shownRemovals {
		changed = append(changed[:shownRemovals], "…")
	}
	out.message = strings.Join(out.err.Fields, ", ") + " cannot change on a live object"
	if len(changed) > 0 {
		out.message += ", and the declaration changes " + strings.Join(changed, ", ")
	}
	if why := saidOf(rejected); why != "" && r.e.protected[w.ref.GroupKind()] {
		out.message += ": " + why
	}
	out.err.Message = out.message
	if r.e.protected[w.ref.GroupKind()] {
		out.err.Hint = "keep its value: objects of this kind hold data or belong to others, and are never deleted to be made anew"
	}
	return out
}

// saidOf returns the first line of the server's message about a field, without values.
func saidOf(rejected error) string {
	status, ok := statusOf(rejected)
	if !ok || status.Details == nil || len(status.Details.Causes) == 0 {
		return ""
	}
	line, _, _ := strings.Cut(withoutDump(status.Details.Causes[0].Message), "\n")
	return redact.Text(strings.TrimSpace(line))
}

// changedAt returns the paths below some fields at which a declaration differs from the live
// object. Fields that only the server sets do not count; fields that we own and no longer declare
// do.
func (r *run) changedAt(w wanted, live *unstructured.Unstructured, fields []string) []string {
	var out []string
	for _, f := range differencesAt(live, w.send, fields) {
		if f.New != nil || f.Hidden {
			out = append(out, f.Path)
		}
	}
	for _, f := range driftedFields(live, w.send, r.set.FieldManager, w.createOnly) {
		below := slices.ContainsFunc(fields, func(field string) bool { return f.Path == field || strings.HasPrefix(f.Path, field+".") })
		if below && f.New == nil && !f.Hidden {
			out = append(out, strings.ReplaceAll(f.Path, `"`, ""))
		}
	}
	return out
}

// mayRecreate reports whether the annotation of the declared or the live object allows a
// recreation. ConfigMaps and Secrets that are immutable as a whole need no annotation.
func (r *run) mayRecreate(w wanted, live *unstructured.Unstructured) bool {
	gk := w.ref.GroupKind()
	if r.e.protected[gk] {
		return false
	}
	if flagged(w.obj, live, r.e.keys.DeleteOnInvalidUpdate) {
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
	body, err := payload(o)
	if err != nil {
		return err
	}
	path := pathOf(mapping, o.GetNamespace(), o.GetName())
	err = c.rest.Post().AbsPath(path[:len(path)-1]...).Param("dryRun", metav1.DryRunAll).
		Param("fieldManager", manager).SetHeader("Content-Type", "application/json").Body(body).Do(quiet(ctx)).Error()
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

// waitGone waits until an object, identified by its UID, no longer exists.
func (r *run) waitGone(ctx context.Context, o *unstructured.Unstructured, timeout time.Duration) error {
	wake := make(chan struct{}, 1)
	ref := RefOf(o)
	stop := r.c.OnChange(func(e ChangeEvent) {
		if keyOf(e.Ref) == keyOf(ref) {
			select {
			case wake <- struct{}{}:
			default:
			}
		}
	})
	defer stop()
	deadline := r.e.clock.NewTimer(timeout)
	defer deadline.Stop()
	latest := o
	for {
		now, known := r.live(ref)
		if !known {
			existing, err := r.c.GetLive(ctx, ref)
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
			return r.stuck(latest)
		}
	}
}

func (r *run) pollTimer(cached bool) <-chan time.Time {
	if cached {
		return nil
	}
	return r.e.clock.After(500 * time.Millisecond)
}

// stuck returns the error for an object whose deletion does not finish.
func (r *run) stuck(o *unstructured.Unstructured) *ObjectError {
	return &ObjectError{Cluster: r.c.name, Object: RefOf(o), Op: "delete", Reason: Stuck, Message: "it is being deleted and " + waitsFor(o), Hint: r.c.unstick(o)}
}

// unstick returns the hint for an object whose deletion does not finish. An object that a Garden or
// Shoot refers to stays while the reference exists. Somebody deleted an object in use, and a
// deletion cannot be undone.
func (c *Cluster) unstick(o *unstructured.Unstructured) string {
	if f := o.GetFinalizers(); len(f) == 1 && f[0] == gardencorev1beta1.ReferenceProtectionFinalizer {
		return c.CommandsHere(fmt.Sprintf("something refers to it, for which it stays; take the finalizer off, and it is made anew at once: kubectl patch %s --type merge -p '{\"metadata\":{\"finalizers\":null}}'",
			KubectlName(RefOf(o))))
	}
	return "find the controller that should remove the finalizer; nothing else waits for this object"
}

// waitsFor says why a deleted object still exists.
func waitsFor(o *unstructured.Unstructured) string {
	if f := o.GetFinalizers(); len(f) > 0 {
		return "waits for finalizer " + strings.Join(f, ", ")
	}
	if f, _, _ := unstructured.NestedStringSlice(o.Object, "spec", "finalizers"); len(f) > 0 && groupKindOf(o) == namespaceKind {
		if what := remains(o); what != "" {
			return "waits for its content to be deleted: " + what
		}
		return "waits for its content to be deleted"
	}
	if g := o.GetDeletionGracePeriodSeconds(); g != nil && *g > 0 {
		return fmt.Sprintf("ends within its grace period of %d s", *g)
	}
	return "waits to be removed"
}
