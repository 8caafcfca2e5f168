package apply

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Explain turns the error of any request to this cluster into one that says where,
// why and what to do next. A nil error stays nil.
func (c *Cluster) Explain(ref Ref, op string, err error) error {
	if err == nil {
		return nil
	}
	return c.explain(ref, op, err)
}

// MergePatch sends a JSON merge patch for an object or one of its subresources; the
// live cache sees the answer at once.
func (c *Cluster) MergePatch(ctx context.Context, ref Ref, patch map[string]any, manager, subresource string) (*unstructured.Unstructured, error) {
	return c.mergePatch(ctx, ref, patch, manager, subresource)
}
