package apply

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/fluxcd/pkg/ssa"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Objects that were written by Update before server-side apply keep fields nobody can remove: the old manager
// owns them for ever. At our first apply these managers' entries in managedFields become ours; what is not
// desired is removed then. Edits made later with kubectl are not taken over: they are drift or a conflict.

// notMigrated are kinds with fields that the server sets on creation, in the name of the creator, and then
// refuses to change (storageClassName, a Job's selector): we would own and drop them.
var notMigrated = []schema.GroupKind{{Kind: "PersistentVolumeClaim"}, {Group: "batch", Kind: "Job"}}

// needsMigration is true before our first successful apply to an object that has entries of former managers.
func (r *run) needsMigration(ref Ref, live *unstructured.Unstructured) bool {
	if slices.Contains(notMigrated, ref.GroupKind()) || len(r.formerManagers(live)) == 0 {
		return false
	}
	ours := slices.ContainsFunc(live.GetManagedFields(), func(m metav1.ManagedFieldsEntry) bool {
		return m.Manager == r.set.FieldManager && m.Operation == metav1.ManagedFieldsOperationApply && m.Subresource == ""
	})
	return !ours || r.old[keyOf(ref)].Applied == ""
}

func (r *run) formerManagers(live *unstructured.Unstructured) []string {
	var out []string
	for _, entry := range live.GetManagedFields() {
		if entry.Subresource == "" && r.isFormer(entry.Manager, entry.Operation) && !slices.Contains(out, entry.Manager) {
			out = append(out, entry.Manager)
		}
	}
	return out
}

func (r *run) isFormer(manager string, op metav1.ManagedFieldsOperationType) bool {
	return slices.ContainsFunc(r.e.migrate, func(m ssa.FieldManager) bool {
		return m.OperationType == op && (m.Name == manager || !m.ExactMatch && strings.HasPrefix(manager, m.Name))
	})
}

// isFormerConflict is true for a conflict with nobody but former managers.
func (r *run) isFormerConflict(err error) bool {
	status, ok := statusOf(err)
	if !ok || !hasCause(status, metav1.CauseTypeFieldManagerConflict) {
		return false
	}
	for _, cause := range status.Details.Causes {
		m := managerPattern.FindStringSubmatch(cause.Message)
		if m == nil || !r.isFormer(m[1], metav1.ManagedFieldsOperationUpdate) {
			return false
		}
	}
	return true
}

// adoptFormer takes over an object that turned out to exist and to be written by former managers.
func (r *run) adoptFormer(ctx context.Context, w wanted, conflict error) outcome {
	live, err := r.c.GetLive(ctx, w.ref)
	if err != nil {
		return r.fail(w.desired, err)
	}
	if conflict != nil && !r.needsMigration(w.ref, live) {
		return r.fail(w.desired, conflict)
	}
	out := r.send(ctx, w, live)
	if out.action == Configured {
		out.action = Adopted
	}
	return out
}

// migrate hands the fields of former managers over to ours.
func (r *run) migrate(ctx context.Context, live *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	patch, err := ssa.PatchReplaceFieldsManagers(live, r.e.migrate, r.set.FieldManager)
	if err != nil {
		return nil, safef("the field managers of %s cannot be read", RefOf(live))
	}
	return r.patchManagers(ctx, live, patch)
}

// migrateVersion rewrites the API version of all entries in managedFields: a version that the kind does not
// have any more, or that lacks a new defaulted field, makes every apply fail (see PatchMigrateToVersion).
func (r *run) migrateVersion(ctx context.Context, live *unstructured.Unstructured, version string) error {
	patch, err := ssa.PatchMigrateToVersion(live, version)
	if err != nil {
		return safef("the field managers of %s cannot be read", RefOf(live))
	}
	_, err = r.patchManagers(ctx, live, patch)
	return err
}

func isUndeclaredField(err error) bool {
	return err != nil && strings.Contains(err.Error(), "field not declared in schema")
}

func (r *run) patchManagers(ctx context.Context, live *unstructured.Unstructured, patch []ssa.JSONPatch) (*unstructured.Unstructured, error) {
	if len(patch) == 0 {
		return live, nil
	}
	ops := []any{map[string]any{"op": "test", "path": "/metadata/resourceVersion", "value": live.GetResourceVersion()}}
	for _, p := range patch {
		ops = append(ops, p)
	}
	body, err := json.Marshal(ops)
	if err != nil {
		return nil, err
	}
	return r.c.patchRef(ctx, RefOf(live), types.JSONPatchType, body, r.set.FieldManager, "")
}

// mergePatch sends a JSON merge patch.
func (c *Cluster) mergePatch(ctx context.Context, ref Ref, patch map[string]any, manager, subresource string) (*unstructured.Unstructured, error) {
	body, err := json.Marshal(patch)
	if err != nil {
		return nil, err
	}
	return c.patchRef(ctx, ref, types.MergePatchType, body, manager, subresource)
}

func (c *Cluster) patchRef(ctx context.Context, ref Ref, kind types.PatchType, body []byte, manager, subresource string) (*unstructured.Unstructured, error) {
	mapping, err := c.Mapping(ctx, ref.GVK())
	if err != nil {
		return nil, err
	}
	path := pathOf(mapping, ref.Namespace, ref.Name)
	if subresource != "" {
		path = append(path, subresource)
	}
	answer, _, err := c.patch(ctx, mapping, path, kind, body, patchOptions{manager: manager})
	return answer, err
}
