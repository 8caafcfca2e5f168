// SPDX-License-Identifier: Apache-2.0

package owner

import (
	"encoding/base64"
	"math/rand"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pergola-dev/pergola/apply"
)

// TestABundleThatIsTooLarge checks that an apply and a dry run reject a bundle that exceeds its
// data Secret before any write.
func TestABundleThatIsTooLarge(t *testing.T) {
	s := newSite(t)
	s.mustApply(s.bundle(false, s.configMap("a")))
	managed := s.managedResourceSpec()
	noise := rand.New(rand.NewSource(1))
	var large []*unstructured.Unstructured
	for _, name := range []string{"a", "b", "c"} {
		content := make([]byte, 700<<10) // random data does not compress
		noise.Read(content)
		o := s.configMap(name)
		require.NoError(t, unstructured.SetNestedField(o.Object, base64.StdEncoding.EncodeToString(content), "binaryData", "key"))
		large = append(large, o)
	}
	b := s.bundle(false, large...)
	_, _, planned := s.run.reconciler.planBundle(s.ctx, s.run.owner, b, &servingCache{})
	_, applied := s.apply(b)
	for _, err := range []error{planned, applied} {
		require.ErrorContains(t, err, "it holds the 3 objects of the bundle, compressed: its values have 2.")
		assert.ErrorContains(t, err, "a Secret may have at most 1.00 MiB (1048576 bytes)")
		assert.ErrorContains(t, err, "cluster local: Secret "+s.ns+"/managedresource-thing-")
	}
	assert.Equal(t, managed, s.managedResourceSpec(), "the ManagedResource is as it was")
	assert.Len(t, s.uids("secrets"), 1)
	assert.Len(t, s.uids("configmaps"), 1)
}

// managedResourceSpec returns the spec of the ManagedResource.
func (s *testSite) managedResourceSpec() any {
	s.Helper()
	mr, err := s.resource("managedresources", s.ns).Get(s.ctx, "thing", metav1.GetOptions{})
	require.NoError(s, err)
	return mr.Object["spec"]
}

// TestManagedResourceRefersToExistingSecret checks that a ManagedResource still refers to its old
// Secret if the new one could not be written.
func TestManagedResourceRefersToExistingSecret(t *testing.T) {
	s := newSite(t)
	s.mustApply(s.bundle(false, s.configMap("a")))
	managed := s.managedResourceSpec()
	quota := s.object(`{apiVersion: v1, kind: ResourceQuota, metadata: {name: quota, namespace: NS}, spec: {hard: {count/secrets: "1"}}}`)
	_, err := s.resource("resourcequotas", s.ns).Create(s.ctx, quota, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = s.resource("resourcequotas", s.ns).Patch(s.ctx, "quota", "application/merge-patch+json",
		[]byte(`{"status":{"hard":{"count/secrets":"1"},"used":{"count/secrets":"1"}}}`), metav1.PatchOptions{}, "status")
	require.NoError(t, err)
	var applied error
	s.eventually("the quota is known", func() bool {
		_, applied = s.apply(s.bundle(false, s.configMap("a"), s.configMap("b")))
		return applied != nil
	})
	assert.Equal(t, apply.ReasonForbidden, apply.ReasonOf(applied), applied)
	assert.Equal(t, managed, s.managedResourceSpec())
	assert.Len(t, s.uids("secrets"), 1)
}

// TestATerminatingNamespace checks that a terminating namespace causes one error before secrets are
// made, in a dry run, too.
func TestATerminatingNamespace(t *testing.T) {
	s := newSite(t)
	require.NoError(t, s.resource("namespaces", "").Delete(s.ctx, s.ns, metav1.DeleteOptions{}))
	_, err := s.resource("namespaces", "").Patch(s.ctx, s.ns, "application/merge-patch+json",
		[]byte(`{"status":{"conditions":[{"type":"NamespaceFinalizersRemaining","status":"True","message":"Some content in the namespace has finalizers remaining: a/b in 1 resource instances"}]}}`),
		metav1.PatchOptions{}, "status")
	require.NoError(t, err)
	_, _, planned := s.run.reconciler.plan(s.ctx, s.run.owner)
	_, _, applied := s.run.prepare(s.ctx)
	for _, err := range []error{planned, applied} {
		require.Error(t, err)
		problems := apply.Problems(err)
		require.Len(t, problems, 1)
		assert.Contains(t, problems[0], "cluster local: Namespace "+s.ns+": ")
		assert.Contains(t, problems[0], "finalizers remaining: a/b in 1 resource instances")
		assert.Contains(t, problems[0], "run again when the namespace no longer exists")
	}
}
