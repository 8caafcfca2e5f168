// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/fluxcd/pkg/ssa"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/pergola-dev/pergola/change"
)

// Some managers write a whole object as a desired state and then hand it over to us. Our first
// apply takes over their fields and removes those that are not desired: no one else ever would. All
// other managers (kubectl create, edit, patch, label, and unknown ones) keep their fields. We own
// equal values together; a different value is a Conflict. Edits after our first apply are drift or
// a conflict, from every manager.

// TakeoverManager is a manager that hands objects over.
type TakeoverManager struct {
	Name      string
	Operation metav1.ManagedFieldsOperationType
	// Annotation, if any, must be on the object: the manager's name alone does not show that it
	// wrote a whole object.
	Annotation string
	// HasInventories means that the manager has its own inventories, which we continue.
	HasInventories bool
}

// LastAppliedAnnotation is the annotation in which kubectl's client-side apply stores the object.
const LastAppliedAnnotation = "kubectl.kubernetes.io/last-applied-configuration"

// adoptionNote is the note of an adopted object.
const adoptionNote = "it already exists; from now on it is deleted when it is no longer declared"

// isForced reports whether fields of others are taken over: the set, the object or the caller of
// the engine may request that.
func (r *setRun) isForced(d *desiredObject) bool {
	return r.set.Force || isTrueAnnotation(d.obj.GetAnnotations()[r.engine.keys.ForceConflicts]) || r.engine.isForced(d.ref)
}

// isTakeoverNeeded reports whether an object has entries of former managers, before our first
// successful apply.
func (r *setRun) isTakeoverNeeded(ref Ref, live *unstructured.Unstructured) bool {
	if len(r.takeoverManagersOf(live)) == 0 {
		return false
	}
	ours := slices.ContainsFunc(managersOf(live), func(m metav1.ManagedFieldsEntry) bool { return r.isOwnManager(m) })
	return !ours || r.oldEntries[objectKeyOf(ref)].AppliedDigest == ""
}

func (r *setRun) isOwnManager(m metav1.ManagedFieldsEntry) bool {
	return m.Manager == r.set.FieldManager && m.Operation == metav1.ManagedFieldsOperationApply && m.Subresource == ""
}

func (r *setRun) isTakeoverManager(live *unstructured.Unstructured, m metav1.ManagedFieldsEntry) bool {
	return r.isSiblingManager(m) && r.canInherit(live) || m.Subresource == "" && slices.ContainsFunc(r.engine.takeoverManagers, func(f TakeoverManager) bool {
		return f.Name == m.Manager && f.Operation == m.Operation && (f.Annotation == "" || live.GetAnnotations()[f.Annotation] != "")
	})
}

// isSiblingManager reports whether an entry is of a set of ours that applies under another name.
func (r *setRun) isSiblingManager(m metav1.ManagedFieldsEntry) bool {
	return m.Operation == metav1.ManagedFieldsOperationApply && m.Subresource == "" && m.Manager != r.set.FieldManager && r.engine.isSibling(m.Manager)
}

// canInherit reports whether an object that a set of ours applied belongs to this set now.
// failIfOwnedElsewhere ensures that no other set declares it.
func (r *setRun) canInherit(live *unstructured.Unstructured) bool {
	origin, at := live.GetAnnotations()[r.engine.keys.Origin], RefOf(live)
	switch {
	case origin == "":
		return false // someone removed the annotation, or no set owns the object
	case r.isOwnOrigin(origin), origin == r.oldEntries[objectKeyOf(at)].Annotations[r.engine.keys.Origin], r.opts.IsDeclaredBy == nil:
		return true
	}
	declared, known := r.opts.IsDeclaredBy(origin, at)
	return known && !declared
}

func (r *setRun) takeoverManagersOf(live *unstructured.Unstructured) []string {
	var out []string
	for _, m := range managersOf(live) {
		if r.isTakeoverManager(live, m) && !slices.Contains(out, m.Manager) {
			out = append(out, m.Manager)
		}
	}
	return out
}

func isManagerConflict(err error) bool {
	status, ok := statusOf(err)
	return ok && hasCause(status, metav1.CauseTypeFieldManagerConflict)
}

// conflictWithOthers returns a conflict without former managers, or nil if there is no other one.
func (r *setRun) conflictWithOthers(live *unstructured.Unstructured, err error) error {
	former := r.takeoverManagersOf(live)
	return withoutManagers(err, func(m string) bool { return slices.Contains(former, m) })
}

// withoutManagers returns a conflict without some managers, or nil if none is left.
func withoutManagers(err error, drop func(manager string) bool) error {
	status, _ := statusOf(err)
	details := *status.Details
	details.Causes = slices.DeleteFunc(slices.Clone(details.Causes), func(c metav1.StatusCause) bool {
		m := managerPattern.FindStringSubmatch(c.Message)
		return c.Type == metav1.CauseTypeFieldManagerConflict && m != nil && drop(m[1])
	})
	if len(details.Causes) == 0 {
		return nil
	}
	status.Details = &details
	return &apierrors.StatusError{ErrStatus: status}
}

// splitConflict returns the fields of a conflict with their managers, if the edits of all these
// managers are taken back. Otherwise it returns the conflict with the other managers.
func splitConflict(err error, from func(manager string) bool) (fields []string, others error) {
	if others = withoutManagers(err, from); others != nil {
		return nil, others
	}
	status, _ := statusOf(err)
	for _, c := range status.Details.Causes {
		if m := managerPattern.FindStringSubmatch(c.Message); m != nil {
			fields = append(fields, fmt.Sprintf("%s (by %s)", strings.TrimPrefix(c.Field, "."), m[1]))
		}
	}
	return fields, nil
}

// isInvalidObject reports whether a request is invalid, not only because of immutable fields;
// fields of other managers may be the reason.
func isInvalidObject(err error) bool { return apierrors.IsInvalid(err) && !isImmutable(err) }

// adopt handles an object that exists although it was not known: the server refused the apply, or
// former managers wrote it.
func (r *setRun) adopt(ctx context.Context, w applyRequest, refused error, opts patchOptions, answer *unstructured.Unstructured) outcome {
	live, err := r.cluster.GetLive(ctx, w.ref)
	switch {
	case err != nil && refused != nil:
		return r.failOutcome(w.desiredObject, refused)
	case err != nil:
		return r.failOutcome(w.desiredObject, err)
	}
	if out, stop := r.failIfOwnedElsewhere(w.desiredObject, live); stop {
		return out
	}
	if r.isTakeoverNeeded(w.ref, live) {
		w.neverApplied = r.oldEntries[objectKeyOf(w.ref)].AppliedDigest == ""
		return r.takeOverFields(ctx, w, live, opts)
	}
	if w.adjustToLive(live, r.set.FieldManager); refused != nil && len(w.immutableFields) > 0 {
		// The live values help: fields that cannot change are sent as they are.
		answer, _, refused = r.patchWithRetry(ctx, w, opts)
	}
	return r.finishApply(ctx, w, live, answer, false, refused)
}

// takeOverFields takes over the fields of former managers and applies. It begins with a dry run, in
// a plan and in an apply. A conflict with any other manager stops the takeover, and the answer
// shows the removed fields.
func (r *setRun) takeOverFields(ctx context.Context, w applyRequest, live *unstructured.Unstructured, opts patchOptions) outcome {
	former := r.takeoverManagersOf(live)
	patch, err := r.takeoverPatch(live)
	if err != nil {
		return r.failOutcome(w.desiredObject, err)
	}
	// the former managers' fields are ours now
	w.adjustToLive(withManagedFields(live, patch), r.set.FieldManager)
	trial := opts
	trial.dry = true
	answer, created, err := r.patchWithRetry(ctx, w, trial)
	if isUndeclaredField(err) && !r.dry {
		if live, err = r.migrateVersion(ctx, live, w.ref.APIVersion); err == nil {
			patch, err = r.takeoverPatch(live)
		}
		if err == nil {
			answer, created, err = r.patchWithRetry(ctx, w, trial)
		}
	}
	if isManagerConflict(err) {
		if others := r.conflictWithOthers(live, err); others != nil {
			return r.failOutcome(w.desiredObject, others)
		}
		trial.force = true
		answer, created, err = r.patchWithRetry(ctx, w, trial)
	}
	hidden := ""
	goes := fieldpath.NewSet()
	switch {
	case r.isInvalidUntilTakeover(ctx, w, err):
		hidden = "the fields that it removes are known only after the takeover"
		if r.dry {
			return outcome{ref: w.ref, action: Adopted, message: joinNotes(adoptionNote, takeoverNote(former, goes), hidden)}
		}
	case err != nil:
		return r.finishApply(ctx, w, live, nil, created, err)
	default:
		goes = r.removedFields(live, answer)
	}
	var back []change.Field
	if r.dry {
		if answer, err = r.predictRemoval(ctx, w.ref, answer, goes); err == nil {
			back = r.fieldsRestoredByWebhooks(ctx, w.ref, answer, goes)
		}
	} else if live, err = r.writeTakeover(ctx, live, patch); err == nil {
		answer, created, err = r.patchWithRetry(ctx, w, opts)
	}
	out := r.finishApply(ctx, w, live, answer, created, err)
	if out.action == Unchanged && (w.neverApplied || len(back) > 0) {
		out.action, out.message = Adopted, adoptionNote // at least its managers are written
	}
	out.restoredByWebhooks = back
	setPreviousManagers(out.restoredByWebhooks, former)
	if out.action == Adopted || out.action == Configured {
		out.message = joinNotes(out.message, takeoverNote(former, goes), hidden)
		setPreviousManagers(out.fields, former)
	}
	return out
}

// writeTakeover writes the managers of a takeover. It retries if others write the object meanwhile,
// for example its status.
func (r *setRun) writeTakeover(ctx context.Context, live *unstructured.Unstructured, patch []ssa.JSONPatch) (*unstructured.Unstructured, error) {
	for range 5 {
		answer, err := r.patchManagers(ctx, live, patch)
		if !apierrors.IsInvalid(err) && !apierrors.IsConflict(err) {
			return answer, err
		}
		now, readErr := r.cluster.GetLive(ctx, RefOf(live))
		if readErr != nil || now.GetUID() != live.GetUID() || now.GetResourceVersion() == live.GetResourceVersion() {
			return nil, err
		}
		if patch, err = r.takeoverPatch(now); err != nil {
			return nil, err
		}
		live = now
	}
	return r.patchManagers(ctx, live, patch)
}

// isInvalidUntilTakeover reports whether the server refuses the object only because of fields of
// former managers, such as a port of the same name. After the takeover the object is valid.
func (r *setRun) isInvalidUntilTakeover(ctx context.Context, w applyRequest, err error) bool {
	return isInvalidObject(err) && r.cluster.validateCreate(ctx, w.obj, r.set.FieldManager) == nil
}

// takeoverPatch returns the patch of managedFields that makes the fields of former managers ours.
func (r *setRun) takeoverPatch(live *unstructured.Unstructured) ([]ssa.JSONPatch, error) {
	var from []ssa.FieldManager
	managers := managersOf(live)
	for i, m := range managers {
		if r.isTakeoverManager(live, m) {
			managers[i] = withoutFinalizers(m)
			from = append(from, ssa.FieldManager{Name: m.Manager, ExactMatch: true, OperationType: m.Operation})
		}
	}
	o := withPlainManagedFields(live)
	o.SetManagedFields(managers)
	patch, err := ssa.PatchReplaceFieldsManagers(o, from, r.set.FieldManager)
	if err != nil {
		return nil, valueFreeErrorf("the field managers of %s cannot be read", RefOf(live))
	}
	return patch, nil
}

// withoutFinalizers returns the entry of a former manager without the finalizers that it set. These
// stay without an owner: each announces work on deletion, by a controller that we do not know.
func withoutFinalizers(m metav1.ManagedFieldsEntry) metav1.ManagedFieldsEntry {
	set := parseFields(m)
	if set == nil {
		return m
	}
	path := fieldpath.MakePathOrDie("metadata", "finalizers")
	rest := set.Difference(fieldpath.NewSet(path))
	rest = rest.RecursiveDifference(fieldpath.NewSet(path))
	if raw, err := rest.ToJSON(); err == nil {
		m.FieldsV1 = metav1.NewFieldsV1(string(raw))
	}
	return m
}

// withManagedFields returns an object with a patch of its managedFields.
func withManagedFields(live *unstructured.Unstructured, patch []ssa.JSONPatch) *unstructured.Unstructured {
	out := live.DeepCopy()
	for _, p := range patch {
		out.SetManagedFields(p.Value)
	}
	return out
}

// removedFields returns the fields that a takeover removes. Former managers (or we) own them in the
// live object, and no one else owns them in answer, the result of the dry run. This is the server's
// rule for fields that left an apply.
func (r *setRun) removedFields(live, answer *unstructured.Unstructured) *fieldpath.Set {
	before, after := fieldpath.NewSet(), fieldpath.NewSet()
	for _, m := range managersOf(live) {
		if r.isTakeoverManager(live, m) {
			m = withoutFinalizers(m)
		}
		if set := parseFields(m); set != nil && (r.isTakeoverManager(live, m) || r.isOwnManager(m)) {
			before = before.Union(set)
		}
	}
	for _, m := range managersOf(answer) {
		if set := parseFields(m); set != nil && !r.isTakeoverManager(live, m) {
			after = after.Union(set)
		}
	}
	return withParents(before).Difference(withParents(after))
}

// withParents adds the named parents of a set's members: a field is removed with the last field in
// it.
func withParents(set *fieldpath.Set) *fieldpath.Set {
	out := set.Union(fieldpath.NewSet())
	set.Iterate(func(p fieldpath.Path) {
		for n := len(p) - 1; n > 0; n-- {
			if p[n-1].FieldName != nil {
				out.Insert(p[:n].Copy())
			}
		}
	})
	return out
}

// predictRemoval returns the object without the removed fields, and with the server's defaults for
// them.
func (r *setRun) predictRemoval(ctx context.Context, ref Ref, answer *unstructured.Unstructured, goes *fieldpath.Set) (*unstructured.Unstructured, error) {
	out := answer.DeepCopy()
	content, _ := withoutFields(out.Object, goes).(map[string]any)
	if out.Object = content; goes.Empty() {
		return out, nil
	}
	return r.withServerDefaults(ctx, ref, out)
}

// withServerDefaults returns a whole object with the server's defaults, or unchanged if the server
// refuses the request.
func (r *setRun) withServerDefaults(ctx context.Context, ref Ref, o *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	full, err := r.cluster.dryRunReplace(ctx, ref, o, r.set.FieldManager)
	if apierrors.IsForbidden(err) || apierrors.IsMethodNotSupported(err) || apierrors.IsConflict(err) {
		return o, nil
	}
	return full, err
}

// withoutFields returns a value without the members of a set.
func withoutFields(v any, goes *fieldpath.Set) any {
	drop := func(e fieldpath.PathElement, inner any) (any, bool) {
		if goes.Members.Has(e) {
			return nil, true
		}
		if deeper, ok := goes.Children.Get(e); ok {
			inner = withoutFields(inner, deeper)
		}
		return inner, false
	}
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for k, inner := range v {
			if kept, gone := drop(fieldpath.PathElement{FieldName: &k}, inner); !gone {
				out[k] = kept
			}
		}
		return out
	case []any:
		out := make([]any, 0, len(v))
		for _, item := range v {
			e, named := elementOf(item, goes)
			if !named {
				out = append(out, item)
				continue
			}
			if kept, gone := drop(e, item); !gone {
				out = append(out, kept)
			}
		}
		return out
	}
	return v
}

// elementOf returns the path element by which a set names an item of a list.
func elementOf(item any, set *fieldpath.Set) (found fieldpath.PathElement, ok bool) {
	look := func(e fieldpath.PathElement) {
		_, there := childAt([]any{item}, e)
		if e.Index == nil && there {
			found, ok = e, true
		}
	}
	set.Members.Iterate(look)
	set.Children.Iterate(look)
	return found, ok
}

// maxNotedFields is the maximum number of fields in a note.
const maxNotedFields = 10

// takeoverNote names the former managers and the removed fields.
func takeoverNote(former []string, goes *fieldpath.Set) string {
	text := "takes over the fields of " + strings.Join(former, ", ")
	var names []string
	goes.Leaves().Iterate(func(p fieldpath.Path) {
		if name := strings.TrimPrefix(p.String(), "."); !strings.HasSuffix(name, LastAppliedAnnotation) {
			names = append(names, name)
		}
	})
	slices.Sort(names)
	switch {
	case len(names) == 0:
		return text
	case len(names) > maxNotedFields:
		names = append(names[:maxNotedFields], "…")
	}
	return text + " and removes undeclared fields: " + strings.Join(names, ", ")
}

func joinNotes(notes ...string) string {
	return strings.Join(slices.DeleteFunc(notes, func(s string) bool { return s == "" }), "; ")
}

// setPreviousManagers adds the former owners to removed fields.
func setPreviousManagers(fields []change.Field, former []string) {
	for i, f := range fields {
		if f.New == nil && f.Old != nil {
			fields[i].Manager = strings.Join(former, ", ")
		}
	}
}
