// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Explain adds place, reason and next step to the error of any request to this cluster. A nil error
// stays nil.
func (c *Cluster) Explain(ref Ref, op string, err error) error {
	if err == nil {
		return nil
	}
	return c.objectErrorFor(ref, op, err)
}

// MergePatch sends a JSON merge patch for an object or one of its subresources and puts the answer
// into the live cache.
func (c *Cluster) MergePatch(ctx context.Context, ref Ref, patch map[string]any, manager, subresource string) (*unstructured.Unstructured, error) {
	return c.mergePatch(ctx, ref, patch, manager, subresource)
}
