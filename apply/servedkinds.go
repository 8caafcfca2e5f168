// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
)

// servedKindsTimeout limits the wait for the API server to list an established definition; it
// usually takes less than a second.
const servedKindsTimeout = 30 * time.Second

// WaitForServedKinds waits until the API server lists all kinds that the objects define, so that
// the next objects may use them. It makes no request for known kinds.
func WaitForServedKinds(ctx context.Context, clk clock.WithTicker, c *Cluster, objects []*unstructured.Unstructured) error {
	tick := clk.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	deadline := clk.Now().Add(servedKindsTimeout)
	for _, gvk := range definedKinds(objects) {
		for {
			_, err := c.Mapping(ctx, gvk)
			if err == nil {
				break
			}
			if !meta.IsNoMatchError(err) {
				return c.Explain(Ref{}, "read the API kinds", err)
			}
			if !clk.Now().Before(deadline) {
				return fmt.Errorf("cluster %s: %s is defined, but the API server does not serve it after %s: check the conditions of its CustomResourceDefinition", c.Name(), gvk, servedKindsTimeout)
			}
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-tick.C():
			}
			c.ResetMapping()
		}
	}
	return nil
}

// definedKinds returns the kinds that the CustomResourceDefinitions among the objects define.
func definedKinds(objects []*unstructured.Unstructured) []schema.GroupVersionKind {
	var out []schema.GroupVersionKind
	for _, o := range objects {
		if o.GetKind() != "CustomResourceDefinition" {
			continue
		}
		group, _, _ := unstructured.NestedString(o.Object, "spec", "group")
		kind, _, _ := unstructured.NestedString(o.Object, "spec", "names", "kind")
		versions, _, _ := unstructured.NestedSlice(o.Object, "spec", "versions")
		for _, v := range versions {
			version, ok := v.(map[string]any)
			if !ok || version["served"] != true {
				continue
			}
			name, _ := version["name"].(string)
			out = append(out, schema.GroupVersionKind{Group: group, Version: name, Kind: kind})
		}
	}
	return out
}
