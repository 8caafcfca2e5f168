// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/fluxcd/pkg/ssa"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// migrateVersion rewrites the API version of all entries in managedFields. A version that the kind
// no longer has, or that lacks a new defaulted field, makes every apply fail (see
// PatchMigrateToVersion).
func (r *setRun) migrateVersion(ctx context.Context, live *unstructured.Unstructured, version string) (*unstructured.Unstructured, error) {
	patch, err := ssa.PatchMigrateToVersion(withPlainManagedFields(live), version)
	if err != nil {
		return nil, valueFreeErrorf("the field managers of %s cannot be read", RefOf(live))
	}
	return r.patchManagers(ctx, live, patch)
}

func isUndeclaredField(err error) bool {
	return err != nil && strings.Contains(err.Error(), "field not declared in schema")
}

func (r *setRun) patchManagers(ctx context.Context, live *unstructured.Unstructured, patch []ssa.JSONPatch) (*unstructured.Unstructured, error) {
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
	answer, err := r.cluster.patchRef(ctx, RefOf(live), types.JSONPatchType, body, r.set.FieldManager, "")
	if err == nil && answer.GetKind() == "Service" && answer.GetAPIVersion() == "v1" {
		r.cluster.waitForServiceInWatchCache(ctx, answer)
	}
	return answer, err
}

// waitForServiceInWatchCache waits until the watch cache of the API server has a Service that was
// just written. An update reads the object from there. If it is outdated, the server retries with
// the new object, but the node ports and addresses of the first attempt stay allocated. The update
// fails with "provided port is already allocated". The registry store commits an allocation before
// the write (k8s.io/apiserver/pkg/registry/generic/registry). Errors are ignored: the update that
// follows has the same one, or succeeds.
func (c *Cluster) waitForServiceInWatchCache(ctx context.Context, written *unstructured.Unstructured) {
	mapping, err := c.Mapping(ctx, written.GroupVersionKind())
	if err != nil {
		return
	}
	_ = c.rest.Get().AbsPath(pathOf(mapping, written.GetNamespace(), written.GetName())...).
		Param("resourceVersion", written.GetResourceVersion()).Do(withoutLogging(ctx)).Error()
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

// dryRunReplace returns the server's dry-run answer to a replace of a whole object.
func (c *Cluster) dryRunReplace(ctx context.Context, ref Ref, o *unstructured.Unstructured, manager string) (*unstructured.Unstructured, error) {
	mapping, err := c.Mapping(ctx, ref.GVK())
	if err != nil {
		return nil, err
	}
	body, err := encodeBody(o)
	if err != nil {
		return nil, err
	}
	raw, err := responseBody(c.rest.Put().AbsPath(pathOf(mapping, ref.Namespace, ref.Name)...).Param("dryRun", metav1.DryRunAll).
		Param("fieldManager", manager).SetHeader("Content-Type", "application/json").Body(body).Do(withoutLogging(ctx)))
	if err != nil {
		return nil, err
	}
	return decodeResponse(raw)
}
