// SPDX-License-Identifier: Apache-2.0

package deploy_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/pergola-dev/pergola/api/crds"
	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/controllers/conventions"
	"github.com/pergola-dev/pergola/deploy"
	"github.com/pergola-dev/pergola/hack/apiserver"
)

// TestGardenDeletionPolicies uses a real API server with only the policies of the chart installed.
func TestGardenDeletionPolicies(t *testing.T) {
	c, err := conventions.NewCluster("test", rest.CopyConfig(apiserver.Start(t)), apply.ClusterOptions{})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	namespace(t, c, "garden")
	namespace(t, c, "another")
	in := renderRole(t, deploy.Operator)
	applyAsAdmin(t, c, append(filterKind(in.Objects, "ValidatingAdmissionPolicy"), filterKind(in.Objects, "ValidatingAdmissionPolicyBinding")...)...)
	dry := metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}
	namespaces := c.Dynamic().Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"})
	require.Never(t, func() bool { return namespaces.Delete(testContext(t), "garden", dry) != nil }, 2*time.Second, 100*time.Millisecond,
		"where nobody knows of Gardens, nobody is locked out")

	for _, crd := range crds.ByGroup("operator.gardener.cloud") {
		o, err := crds.ToUnstructured(crd)
		require.NoError(t, err)
		applyAsAdmin(t, c, o)
	}
	gardens := c.Dynamic().Resource(schema.GroupVersionResource{Group: "operator.gardener.cloud", Version: "v1alpha1", Resource: "gardens"})
	garden := func(name string, finalizers ...string) *unstructured.Unstructured {
		text, err := os.ReadFile("../landscapes/local/garden/garden.yaml")
		require.NoError(t, err)
		o := &unstructured.Unstructured{}
		require.NoError(t, yaml.Unmarshal(text, &o.Object))
		o.SetName(name)
		o.SetFinalizers(finalizers)
		return o
	}
	refused := func(err error, says string) bool { return err != nil && strings.Contains(err.Error(), says) }

	// The API server takes a moment to load policies and their parameters.
	require.Eventually(t, func() bool {
		_, err := gardens.Create(testContext(t), garden("first", "gardener.cloud/operator"), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return refused(err, "must not have the finalizers")
	}, 30*time.Second, 100*time.Millisecond)
	require.Eventually(t, func() bool {
		_, err := gardens.Create(testContext(t), garden("first", "example.org/own"), metav1.CreateOptions{})
		return err == nil
	}, 30*time.Second, 100*time.Millisecond, "the first one")
	require.Eventually(t, func() bool {
		_, err := gardens.Create(testContext(t), garden("second"), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return refused(err, `the Garden "first" already exists`)
	}, 30*time.Second, 100*time.Millisecond)
	require.Eventually(t, func() bool {
		return refused(namespaces.Delete(testContext(t), "garden", dry), "namespace garden stays")
	}, 30*time.Second, 100*time.Millisecond)
	require.NoError(t, namespaces.Delete(testContext(t), "another", dry))

	err = gardens.Delete(testContext(t), "first", metav1.DeleteOptions{})
	require.True(t, apierrors.IsForbidden(err), "%v", err)
	assert.ErrorContains(t, err, "confirmation.gardener.cloud/deletion=true")
	err = gardens.DeleteCollection(testContext(t), metav1.DeleteOptions{}, metav1.ListOptions{})
	require.True(t, apierrors.IsForbidden(err), "%v", err)
	_, err = gardens.Patch(testContext(t), "first", types.MergePatchType, []byte(`{"metadata":{"finalizers":null,"annotations":{"confirmation.gardener.cloud/deletion":"true"}}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	require.NoError(t, gardens.Delete(testContext(t), "first", metav1.DeleteOptions{}))
	require.Eventually(t, func() bool { return namespaces.Delete(testContext(t), "garden", dry) == nil }, 30*time.Second, 100*time.Millisecond, "there is no Garden any more")
}
