// SPDX-License-Identifier: Apache-2.0

package finalizers

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"

	"github.com/pergola-dev/pergola/apply"
)

// Add adds finalizers.
func Add(wanted ...string) func([]string) []string {
	return func(have []string) []string {
		out := slices.Clone(have)
		for _, f := range wanted {
			if !slices.Contains(out, f) {
				out = append(out, f)
			}
		}
		return out
	}
}

// Remove removes finalizers.
func Remove(gone ...string) func([]string) []string {
	return func(have []string) []string {
		return slices.DeleteFunc(slices.Clone(have), func(f string) bool { return slices.Contains(gone, f) })
	}
}

// Change changes the finalizers of an object.
func Change(ctx context.Context, c *apply.Cluster, manager string, ref apply.Ref, change func([]string) []string) error {
	mapping, err := c.Mapping(ctx, ref.GVK())
	if err != nil {
		return c.Explain(ref, "write the finalizers of", err)
	}
	client, err := metadata.NewForConfig(c.RESTConfig())
	if err != nil {
		return fmt.Errorf("cluster %s: %w", c.Name(), err)
	}
	of := metadata.ResourceInterface(client.Resource(mapping.Resource).Namespace(ref.Namespace))
	item, err := of.Get(ctx, ref.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return c.Explain(ref, "read", err)
	}
	return Patch(ctx, c, manager, of, ref, item, change)
}

// maxAttempts is the number of tries after conflicts with other writers.
const maxAttempts = 5

// Patch writes the whole list of finalizers, so it requires the resourceVersion that was read.
func Patch(ctx context.Context, c *apply.Cluster, manager string, of metadata.ResourceInterface, ref apply.Ref, item *metav1.PartialObjectMetadata, change func([]string) []string) error {
	for attempt := 1; ; attempt++ {
		wanted := change(item.Finalizers)
		if slices.Equal(wanted, item.Finalizers) {
			return nil
		}
		body, err := json.Marshal(map[string]any{"metadata": map[string]any{"finalizers": wanted, "resourceVersion": item.ResourceVersion, "uid": item.UID}})
		if err != nil {
			return err
		}
		_, err = of.Patch(ctx, ref.Name, types.MergePatchType, body, metav1.PatchOptions{FieldManager: manager})
		if apierrors.IsConflict(err) && attempt < maxAttempts {
			next, rerr := of.Get(ctx, ref.Name, metav1.GetOptions{})
			if rerr == nil {
				// changed meanwhile, or recreated with the same name, to which references apply as
				// well
				item = next
				continue
			}
			err = rerr
		}
		if apierrors.IsNotFound(err) {
			return nil
		}
		return c.Explain(ref, "write the finalizers of", err)
	}
}
