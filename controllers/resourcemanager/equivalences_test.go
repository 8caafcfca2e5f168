// SPDX-License-Identifier: Apache-2.0

package resourcemanager

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestEquivalences: an object that is declared under an equivalent kind is not deleted under the
// old kind, but leaves the inventory. Any two kinds will do: the API server does not check that
// they are one object.
func TestEquivalences(t *testing.T) {
	s := newTestEnv(t)
	_, stop := s.startClass("")
	defer stop()
	secret := "{apiVersion: v1, kind: Secret, metadata: {name: NAME, namespace: NS}, stringData: {a: b}}"
	s.writeDataSecret("moved", configMap("same"))
	s.create("{apiVersion: resources.gardener.cloud/v1alpha1, kind: ManagedResource, metadata: {name: moved, namespace: NS}, spec: {equivalences: [[{group: \"\", kind: ConfigMap}, {group: \"\", kind: Secret}]], secretRefs: [{name: moved}]}}")
	s.createManagedResource("plain", configMap("other"))
	s.waitForConditions("moved", healthyConditions...)
	s.waitForConditions("plain", healthyConditions...)

	s.writeDataSecret("moved", strings.ReplaceAll(secret, "NAME", "same"))
	s.writeDataSecret("plain", strings.ReplaceAll(secret, "NAME", "other"))
	s.waitForDeletion("ConfigMap", "other")
	s.waitForObject("Secret", "same")
	s.waitForConditions("moved", healthyConditions...)
	s.waitForObject("ConfigMap", "same")
	mr, err := s.get("ManagedResource", "moved")
	require.NoError(t, err)
	resources, _, err := unstructured.NestedSlice(mr.Object, "status", "resources")
	require.NoError(t, err)
	require.Len(t, resources, 1)
	assert.Equal(t, "Secret", resources[0].(map[string]any)["kind"])
}
