// SPDX-License-Identifier: Apache-2.0

package resourcemanager

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	resourcesv1alpha1 "github.com/pergola-dev/pergola/api/resources/v1alpha1"
)

// applyManagers returns the managers that applied an object's fields.
func (s *testEnv) applyManagers(kind, name string) []string {
	s.Helper()
	o, err := s.get(kind, name)
	require.NoError(s, err)
	var out []string
	for _, m := range o.GetManagedFields() {
		if m.Operation == metav1.ManagedFieldsOperationApply {
			out = append(out, m.Manager)
		}
	}
	return out
}

// createWithClass creates a ManagedResource of a class with its data Secret.
func (s *testEnv) createWithClass(name, class, spec string, manifests ...string) {
	s.Helper()
	s.writeDataSecret(name, manifests...)
	s.create("{apiVersion: resources.gardener.cloud/v1alpha1, kind: ManagedResource, metadata: {name: " + name + ", namespace: NS}, spec: {class: " + class + ", " + spec + "secretRefs: [{name: " + name + "}]}}")
}

// TestTwoClassesDeclareOneObject: each class has its own field manager, so that two classes do not
// overwrite each other. The second one names the first in its error, and gets the object once the
// first releases it.
func TestTwoClassesDeclareOneObject(t *testing.T) {
	s := newTestEnv(t)
	_, stop := s.startClass("")
	defer stop()
	_, stopOther := s.startClass("mine")
	defer stopOther()
	s.createManagedResource("first", configMap("shared"))
	s.waitForConditions("first", healthyConditions...)
	assert.Equal(t, []string{"pergola"}, s.applyManagers("ConfigMap", "shared"))

	s.createWithClass("second", "mine", "", strings.ReplaceAll(configMap("shared"), "a: b", "a: c"), configMap("own"))
	s.waitForConditions("second", "ResourcesApplied=False/ApplyFailed")
	assert.Contains(t, s.conditionMessage("second", "ResourcesApplied"), "ManagedResource "+s.ns+"/first declares this object as well")
	assert.Equal(t, []string{"pergola/mine"}, s.applyManagers("ConfigMap", "own"), "the rest is applied")
	s.waitForConditions("first", healthyConditions...)

	shared, err := s.get("ConfigMap", "shared")
	require.NoError(t, err)
	s.writeDataSecret("first", configMap("else"))
	s.eventually("the other class has it", func() bool {
		o, err := s.get("ConfigMap", "shared")
		return err == nil && o.GetAnnotations()[resourcesv1alpha1.Origin] == s.ns+"/second"
	})
	s.waitForConditions("second", healthyConditions...)
	assert.Equal(t, []string{"pergola/mine"}, s.applyManagers("ConfigMap", "shared"))
	moved, err := s.get("ConfigMap", "shared")
	require.NoError(t, err)
	assert.Equal(t, shared.GetUID(), moved.GetUID(), "it was not deleted in between")
	assert.Equal(t, "c", moved.Object["data"].(map[string]any)["a"])
}

// TestClassesReconcileConcurrently: class * and a named class are both responsible; exactly one of
// them reconciles the ManagedResource in the end.
func TestClassesReconcileConcurrently(t *testing.T) {
	s := newTestEnv(t)
	_, stop := s.startClass(resourcesv1alpha1.ClassAll)
	defer stop()
	_, stopOther := s.startClass("mine")
	defer stopOther()
	const many = 20
	name := func(i int) string { return fmt.Sprintf("r%d", i) }
	var group sync.WaitGroup
	for i := range many {
		group.Go(func() { s.createWithClass(name(i), "mine", "", configMap(name(i))) })
	}
	group.Wait()
	for i := range many {
		s.waitForConditions(name(i), healthyConditions...)
		s.eventually("one has it", func() bool {
			mr, err := s.get("ManagedResource", name(i))
			return err == nil && len(mr.GetFinalizers()) == 1
		})
	}
	for i := range many {
		s.writeDataSecret(name(i), strings.ReplaceAll(configMap(name(i)), "a: b", "a: c"))
	}
	for i := range many {
		s.eventually("it goes on", func() bool {
			o, err := s.get("ConfigMap", name(i))
			return err == nil && o.Object["data"].(map[string]any)["a"] == "c"
		})
	}
}

// TestWaitsForFinalizerOfOtherClass: objects that a stopped resource manager must release are
// reported.
func TestWaitsForFinalizerOfOtherClass(t *testing.T) {
	s := newTestEnv(t)
	_, stop := s.startClass("mine")
	s.createWithClass("thing", "mine", "", configMap("one"))
	s.waitForConditions("thing", healthyConditions...)
	stop()
	_, stop = s.startClass("")
	defer stop()
	s.patch("ManagedResource", "thing", "{spec: {class: null}}")
	s.waitForConditions("thing", "ResourcesApplied=Progressing/DeletionPending")
	assert.Contains(t, s.conditionMessage("thing", "ResourcesApplied"), "The resource manager of class mine still owns its objects")
	_, stopOther := s.startClass("mine")
	defer stopOther()
	s.waitForConditions("thing", healthyConditions...)
	s.eventually("its finalizer tells the class", func() bool {
		mr, err := s.get("ManagedResource", "thing")
		return err == nil && slices.Equal(mr.GetFinalizers(), []string{resourcesv1alpha1.FinalizerName})
	})
}

// TestTwoInstancesOfOneClass: two instances that cannot see each other's ManagedResources do not
// overwrite each other.
func TestTwoInstancesOfOneClass(t *testing.T) {
	one, two := newTestEnv(t), newTestEnv(t)
	shared := strings.ReplaceAll(configMap("shared"), "NS", one.ns)
	_, stop := one.startClass("")
	defer stop()
	_, stopOther := two.startClass("")
	defer stopOther()
	one.createManagedResource("first", shared)
	one.waitForConditions("first", healthyConditions...)
	two.createManagedResource("second", strings.ReplaceAll(shared, "a: b", "a: c"))
	two.waitForConditions("second", "ResourcesApplied=False/ApplyFailed")
	assert.Contains(t, two.conditionMessage("second", "ResourcesApplied"), "ManagedResource "+one.ns+"/first ")
	o, err := one.get("ConfigMap", "shared")
	require.NoError(t, err)
	assert.Equal(t, "b", o.Object["data"].(map[string]any)["a"])
	one.waitForConditions("first", healthyConditions...)

	one.writeDataSecret("first", configMap("else"))
	two.eventually("the other one has it", func() bool {
		o, err := one.get("ConfigMap", "shared")
		return err == nil && o.Object["data"].(map[string]any)["a"] == "c"
	})
	two.waitForConditions("second", healthyConditions...)
}

// TestClassChangeKeepsObjects: the new class owns the objects that the previous class kept, with
// all their fields.
func TestClassChangeKeepsObjects(t *testing.T) {
	s := newTestEnv(t)
	_, stop := s.startClass("")
	defer stop()
	_, stopOther := s.startClass("mine")
	defer stopOther()
	s.writeDataSecret("thing", strings.ReplaceAll(configMap("one"), "a: b", "a: b, stale: x"))
	s.create("{apiVersion: resources.gardener.cloud/v1alpha1, kind: ManagedResource, metadata: {name: thing, namespace: NS}, spec: {keepObjects: true, secretRefs: [{name: thing}]}}")
	s.waitForConditions("thing", healthyConditions...)
	before, err := s.get("ConfigMap", "one")
	require.NoError(t, err)
	s.writeDataSecret("thing", configMap("one"))
	s.patch("ManagedResource", "thing", `{"spec": {"class": "mine"}}`)
	s.eventually("the new class has it", func() bool {
		managers := s.applyManagers("ConfigMap", "one")
		return len(managers) == 1 && managers[0] == "pergola/mine"
	})
	s.waitForConditions("thing", healthyConditions...)
	after, err := s.get("ConfigMap", "one")
	require.NoError(t, err)
	assert.Equal(t, before.GetUID(), after.GetUID(), "it was not made anew")
	assert.NotContains(t, after.Object["data"], "stale")
}

// TestReplicasAfterAutoscalerDeletion: replicas belong to the autoscaler while it exists, and are
// applied again once it is deleted.
func TestReplicasAfterAutoscalerDeletion(t *testing.T) {
	s := newTestEnv(t)
	_, stop := s.startClass("")
	defer stop()
	s.createManagedResource("thing", "{apiVersion: apps/v1, kind: Deployment, metadata: {name: app, namespace: NS}, spec: {replicas: 2, selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: c}]}}}}")
	replicas := func() any {
		o, err := s.get("Deployment", "app")
		if err != nil {
			return nil
		}
		return o.Object["spec"].(map[string]any)["replicas"]
	}
	s.eventually("it is applied", func() bool { return replicas() == int64(2) })
	s.waitForConditions("thing", "ResourcesApplied=True/ApplySucceeded")
	// The reference may have any version: autoscalers use the kind.
	hpa := s.create("{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: app, namespace: NS}, spec: {minReplicas: 3, maxReplicas: 5, scaleTargetRef: {apiVersion: extensions/v1beta1, kind: Deployment, name: app}}}")
	s.eventually("the autoscaler is known", func() bool {
		mr, err := s.get("ManagedResource", "thing")
		if err != nil {
			return false
		}
		text, err := mr.MarshalJSON()
		return err == nil && strings.Contains(string(text), `"replicas"`)
	})
	s.patch("Deployment", "app", `{"spec": {"replicas": 4}}`)
	s.waitForConditions("thing", "ResourcesApplied=True/ApplySucceeded")
	assert.Equal(t, int64(4), replicas())
	require.NoError(t, s.resource(hpa).Delete(s.ctx, "app", metav1.DeleteOptions{}))
	s.eventually("the declared number is back", func() bool { return replicas() == int64(2) })
}
