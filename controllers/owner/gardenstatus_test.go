// SPDX-License-Identifier: Apache-2.0

package owner

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
	"github.com/pergola-dev/pergola/render"
)

// liveGarden returns the Garden of a site.
func (s *testSite) liveGarden() *unstructured.Unstructured {
	s.Helper()
	obj, err := s.run.owner.ObjectCluster.GetLive(s.ctx, s.run.owner.Ref)
	require.NoError(s, err)
	return obj
}

// TestNameOfTheGenericKubeconfig checks that an annotation of the Garden has the name of its
// generic kubeconfig, follows changes, and is restored.
func TestNameOfTheGenericKubeconfig(t *testing.T) {
	s := newGarden(t)
	name := func(of string) string {
		require.NoError(t, s.run.annotateGenericKubeconfig(s.ctx, map[string]render.SecretFact{"ca": {Name: "ca-1"}, secretGenericKubeconfig: {Name: of}}))
		return s.liveGarden().GetAnnotations()["generic-token-kubeconfig.secret.gardener.cloud/name"]
	}
	assert.Equal(t, "generic-token-kubeconfig-1a", name("generic-token-kubeconfig-1a"))
	version := s.liveGarden().GetResourceVersion()
	assert.Equal(t, "generic-token-kubeconfig-1a", name("generic-token-kubeconfig-1a"))
	assert.Equal(t, version, s.liveGarden().GetResourceVersion(), "nothing is written while it is so")
	assert.Equal(t, "generic-token-kubeconfig-2b", name("generic-token-kubeconfig-2b"), "after a rotation")
	assert.Equal(t, "generic-token-kubeconfig-2b", name(""), "where none was made, the last one counts")
	for _, f := range s.liveGarden().GetManagedFields() {
		if strings.Contains(f.FieldsV1.String(), gardencorev1beta1.GenericTokenKubeconfigSecretName) {
			assert.Equal(t, "gardener-operator", f.Manager, "it is a controller's, and Git's declaration leaves it alone")
		}
	}

	mapping, err := s.run.owner.ObjectCluster.Mapping(s.ctx, s.run.owner.Ref.GVK())
	require.NoError(t, err)
	_, err = s.api.Resource(mapping.Resource).Patch(s.ctx, s.ns, types.MergePatchType, []byte(`{"metadata":{"annotations":null}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	s.eventually("the annotation comes back", func() bool { return name("generic-token-kubeconfig-2b") == "generic-token-kubeconfig-2b" })

	s.run.owner.Input.Owner.Kind = Seed
	require.NoError(t, s.run.annotateGenericKubeconfig(s.ctx, map[string]render.SecretFact{secretGenericKubeconfig: {Name: "of-a-seed"}}))
	assert.Equal(t, "generic-token-kubeconfig-2b", s.liveGarden().GetAnnotations()[gardencorev1beta1.GenericTokenKubeconfigSecretName])
}

// TestStatusOfAGarden checks that the status of a reconciling Garden has the gardener, the
// generation and the API address. From the first operation on, the type is Reconcile, and a failed
// operation says whether it is retried.
func TestStatusOfAGarden(t *testing.T) {
	s := newGarden(t)
	r, o := s.run.reconciler, s.run.owner
	r.Gardener = gardencorev1beta1.Gardener{ID: "id", Name: "gardener-operator", Version: "v1.150.0"}
	o.Input.Objects = map[string]map[string]any{Garden: s.liveGarden().Object}
	told := func() (map[string]any, map[string]any) {
		status, _, _ := unstructured.NestedMap(s.liveGarden().Object, "status")
		operation, _ := status["lastOperation"].(map[string]any)
		return status, operation
	}
	status := r.newStatus(o)
	require.NoError(t, status.start(s.ctx))
	got, operation := told()
	assert.Equal(t, map[string]any{"id": "id", "name": "gardener-operator", "version": "v1.150.0"}, got["gardener"])
	assert.Equal(t, []any{map[string]any{"name": "virtual-garden", "url": "https://api.virtual.example.org"}}, got["advertisedAddresses"])
	assert.Equal(t, int64(1), got["observedGeneration"])
	assert.Equal(t, "Reconcile", operation["type"])
	assert.Equal(t, "Processing", operation["state"])

	require.NoError(t, status.writeOutcome(s.ctx, []string{"no luck."}))
	got, operation = told()
	assert.Equal(t, "Error", operation["state"])
	assert.Equal(t, "no luck.", operation["description"], "who does not try again does not say so")
	assert.NotContains(t, got, "lastErrors")
	r.RetriesFailures = true
	for _, problem := range []string{"no luck", "no luck."} {
		status = r.newStatus(o)
		require.NoError(t, status.start(s.ctx))
		require.NoError(t, status.writeOutcome(s.ctx, []string{problem}))
		_, operation = told()
		assert.Equal(t, "no luck. Operation will be retried.", operation["description"])
	}

	status = r.newStatus(o)
	require.NoError(t, status.start(s.ctx))
	require.NoError(t, status.finish(s.ctx, nil))
	_, operation = told()
	assert.Equal(t, "Reconcile", operation["type"])
	assert.Equal(t, "Succeeded", operation["state"])
	assert.Equal(t, int64(100), operation["progress"])
}

func TestAdvertisedAddresses(t *testing.T) {
	domains := func(names ...any) map[string]any {
		return map[string]any{"spec": map[string]any{"virtualCluster": map[string]any{"dns": map[string]any{"domains": names}}}}
	}
	assert.Nil(t, advertisedAddresses(nil))
	assert.Nil(t, advertisedAddresses(domains()))
	assert.Nil(t, advertisedAddresses(domains(map[string]any{"provider": "x"})))
	got := advertisedAddresses(domains(map[string]any{"name": "a.example.org"}, map[string]any{"name": "b.example.org"}))
	require.Len(t, got, 1)
	assert.Equal(t, "https://api.a.example.org", got[0].URL)
	assert.Nil(t, got[0].Application)
}
