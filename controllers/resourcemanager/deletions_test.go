// SPDX-License-Identifier: Apache-2.0

package resourcemanager

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pergola-dev/pergola/controllers/resourcemanager/managedresource"
)

// TestDeletionsByOwner: with the annotation, objects that leave a ManagedResource, would
// be recreated, or belong to a deleted ManagedResource stay. Everything else is unaffected.
func TestDeletionsByOwner(t *testing.T) {
	const immutable = "{apiVersion: v1, kind: ConfigMap, metadata: {name: fixed, namespace: NS}, immutable: true, data: {a: b}}"
	for name, left := range map[string]bool{"left": true, "not left": false} {
		t.Run(name, func(t *testing.T) {
			s := newTestEnv(t)
			_, stop := s.startClass("")
			defer stop()
			s.createManagedResource("thing", configMap("leaves"), configMap("stays"), immutable)
			s.waitForConditions("thing", healthyConditions...)
			if left {
				s.patch("ManagedResource", "thing", `{"metadata": {"annotations": {"`+managedresource.AnnotationDeletions+`": "`+managedresource.DeletionsByOwner+`"}}}`)
			}
			uid := func(name string) types.UID {
				o, err := s.get("ConfigMap", name)
				require.NoError(t, err)
				return o.GetUID()
			}
			was := uid("fixed")

			s.writeDataSecret("thing", configMap("stays"), configMap("new"), strings.ReplaceAll(immutable, "a: b", "a: c"))
			s.waitForObject("ConfigMap", "new")
			if !left {
				s.waitForDeletion("ConfigMap", "leaves")
				s.eventually("it is made anew", func() bool {
					o, err := s.get("ConfigMap", "fixed")
					return err == nil && o.GetUID() != was
				})
				return
			}
			s.eventually("it says so", func() bool {
				return strings.Contains(s.conditionMessage("thing", "ResourcesApplied"), "left to the author of the ManagedResource")
			})
			s.waitForObject("ConfigMap", "leaves")
			assert.Equal(t, was, uid("fixed"))

			s.writeDataSecret("thing", configMap("stays"), configMap("new"), immutable)
			s.waitForConditions("thing", healthyConditions...)
			s.patch("ConfigMap", "stays", `{"data": {"a": "drift"}}`)
			s.eventually("drift is repaired", func() bool {
				o, err := s.get("ConfigMap", "stays")
				return err == nil && o.Object["data"].(map[string]any)["a"] == "b"
			})
			mr, err := s.get("ManagedResource", "thing")
			require.NoError(t, err)
			require.NoError(t, s.resource(mr).Delete(t.Context(), "thing", metav1.DeleteOptions{}))
			s.writeDataSecret("thing", configMap("stays"), configMap("never"))
			s.eventually("it is on its way", func() bool {
				mr, err := s.get("ManagedResource", "thing")
				return err == nil && mr.GetDeletionTimestamp() != nil && len(mr.GetFinalizers()) == 1
			})
			for _, name := range []string{"leaves", "stays", "new", "fixed"} {
				s.waitForObject("ConfigMap", name)
			}
		})
	}
}
