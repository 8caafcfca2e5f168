// SPDX-License-Identifier: Apache-2.0

package landscape

import (
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/components"
	"github.com/pergola-dev/pergola/controllers/resourcemanager/managedresource"
	"github.com/pergola-dev/pergola/landscapes"
)

func newConvergerWithSpec(t *testing.T, spec string) (*Converger, error) {
	t.Helper()
	l, _, err := landscapes.LoadFS(t.Context(), fstest.MapFS{"landscape.yaml": &fstest.MapFile{
		Data: []byte("apiVersion: landscape.pergola.dev/v1alpha1\nkind: Landscape\nmetadata: {name: test}\nspec:\n  gardenAPI: crd\n" + spec),
	}}, ".", landscapes.Options{})
	require.NoError(t, err)
	c, err := New(l, Options{Catalogue: components.FS, Connections: Connections{Configs: map[string]*rest.Config{Runtime: {Host: "https://127.0.0.1:1"}}}, Clock: clocktesting.NewFakeClock(noon)})
	if err == nil {
		t.Cleanup(c.Close)
	}
	return c, err
}

// TestHealthSettings checks that the health settings of landscape.yaml reach the reconciler.
func TestHealthSettings(t *testing.T) {
	c, err := newConvergerWithSpec(t, "")
	require.NoError(t, err)
	assert.Nil(t, c.members.reconciler.ConditionSettings.HealthRules)
	assert.False(t, c.members.reconciler.ConditionSettings.ExistenceOnly)
	assert.Nil(t, c.members.reconciler.ConditionSettings.ProgressingThreshold)

	c, err = newConvergerWithSpec(t, "  managedResourceProgressingThreshold: 1h\n  health: {otherKinds: Existence}\n")
	require.NoError(t, err)
	assert.True(t, c.members.reconciler.ConditionSettings.ExistenceOnly)
	require.NotNil(t, c.members.reconciler.ConditionSettings.ProgressingThreshold)
	assert.Equal(t, time.Hour, *c.members.reconciler.ConditionSettings.ProgressingThreshold)

	_, err = newConvergerWithSpec(t, "  health: {rules: [{kind: Pod, healthy: obj}]}\n")
	assert.ErrorContains(t, err, "landscape.yaml: spec.health: rules[0].healthy:1:1: undeclared reference to 'obj'", "a landscape that is not valid is not converged")
}

// TestHealthRuleDecides checks that a health rule decides about a live object.
func TestHealthRuleDecides(t *testing.T) {
	cluster, client := testCluster(t), testClient(t)
	ctx := testContext(t)
	c, err := newConvergerWithSpec(t, `  health:
    rules:
    - kind: ConfigMap
      healthy: self.?data.?ready.orValue("") == "yes"
      message: '"ready is " + self.?data.?ready.orValue("not said")'
`)
	require.NoError(t, err)
	ref := apply.Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: "default", Name: "judged"}
	judge := managedresource.Judge{Cluster: cluster, Rules: c.members.reconciler.ConditionSettings.HealthRules, ExistenceOnly: c.members.reconciler.ConditionSettings.ExistenceOnly}

	object, err := client.CoreV1().ConfigMaps(ref.Namespace).Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		// the cache selects this label
		Name: ref.Name, Labels: map[string]string{"resources.gardener.cloud/managed-by": "gardener"},
	}}, metav1.CreateOptions{})
	require.NoError(t, err)
	t.Cleanup(func() {
		_ = client.CoreV1().ConfigMaps(ref.Namespace).Delete(testContext(t), ref.Name, metav1.DeleteOptions{})
	})
	eventually(t, "the object in the cache", func() bool {
		v, err := judge.JudgeObject(ctx, ref)
		return err == nil && v.Message == "ready is not said" && !v.Healthy && v.Reason == "ConfigMapUnhealthy"
	})
	object.Data = map[string]string{"ready": "yes"}
	_, err = client.CoreV1().ConfigMaps(ref.Namespace).Update(ctx, object, metav1.UpdateOptions{})
	require.NoError(t, err)
	eventually(t, "the rule satisfied", func() bool {
		bad, rolling, err := judge.FirstProblems(ctx, []apply.Ref{ref})
		return err == nil && bad == nil && rolling == nil
	})
	plain := managedresource.Judge{Cluster: cluster}
	v, err := plain.JudgeObject(ctx, ref)
	require.NoError(t, err)
	assert.Equal(t, "ConfigMap exists", v.Message, "without the rule")
}
