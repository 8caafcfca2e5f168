// SPDX-License-Identifier: Apache-2.0

package resourcemanager

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	resourcesv1alpha1 "github.com/pergola-dev/pergola/api/resources/v1alpha1"
)

func configMap(name string) string {
	return strings.ReplaceAll(configMapManifest, "name: one", "name: "+name)
}

// createManagedResource creates a ManagedResource and its data Secret of the same name.
func (s *testEnv) createManagedResource(name string, manifests ...string) {
	s.Helper()
	s.writeDataSecret(name, manifests...)
	s.create("{apiVersion: resources.gardener.cloud/v1alpha1, kind: ManagedResource, metadata: {name: " + name + ", namespace: NS}, spec: {secretRefs: [{name: " + name + "}]}}")
}

// writeDataSecret writes the data Secret.
func (s *testEnv) writeDataSecret(name string, manifests ...string) {
	s.Helper()
	o := s.object("{apiVersion: v1, kind: Secret, metadata: {name: " + name + ", namespace: NS}}")
	o.Object["stringData"] = map[string]any{"data.yaml": strings.ReplaceAll(strings.Join(manifests, "\n---\n"), "NS", s.ns)}
	if live, err := s.get("Secret", name); err == nil {
		o.SetResourceVersion(live.GetResourceVersion())
		_, err = s.resource(o).Update(s.ctx, o, metav1.UpdateOptions{})
		require.NoError(s, err)
		return
	}
	_, err := s.resource(o).Create(s.ctx, o, metav1.CreateOptions{})
	require.NoError(s, err)
}

// conditionMessage returns the message of a condition.
func (s *testEnv) conditionMessage(name string, condition string) string {
	o, err := s.get("ManagedResource", name)
	if err != nil {
		return ""
	}
	list, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	for _, c := range list {
		if m := c.(map[string]any); m["type"] == condition {
			return m["message"].(string)
		}
	}
	return ""
}

// waitUntilIdle waits until a ManagedResource is reconciled and nothing is due.
func (s *testEnv) waitUntilIdle(m *Manager, name string) {
	s.Helper()
	key := types.NamespacedName{Namespace: s.ns, Name: name}
	s.eventually("it is quiet", func() bool {
		m.mu.Lock()
		defer m.mu.Unlock()
		return m.dueTimes[key].After(time.Now()) && m.queue.Len() == 0
	})
}

// TestRequestCounts counts the requests for one ManagedResource: nothing is read twice, and the
// status is written at the beginning and at the end.
func TestRequestCounts(t *testing.T) {
	s := newTestEnv(t)
	s.createManagedResource("warm", configMap("warm")) // opens the caches
	m, stop := s.startClass("")
	defer stop()
	s.waitForConditions("warm", healthyConditions...)
	s.waitUntilIdle(m, "warm")

	before := m.options.Source.Requests()
	s.createManagedResource("thing", configMap("a"), configMap("b"), configMap("c"), configMap("d"))
	s.waitForConditions("thing", healthyConditions...)
	s.waitUntilIdle(m, "thing")
	assert.Equal(t, map[string]int{"get": 1, "patch": 3, "patch-apply": 4}, map[string]int(m.options.Source.Requests().Sub(before)),
		"the Secret; the finalizer, the status twice; the objects")

	before = m.options.Source.Requests()
	s.writeDataSecret("thing", configMap("a"), configMap("b"), configMap("c"), strings.ReplaceAll(configMap("d"), "a: b", "a: c"))
	s.eventually("it is changed", func() bool {
		o, err := s.get("ConfigMap", "d")
		v, _, _ := unstructured.NestedString(o.Object, "data", "a")
		return err == nil && v == "c"
	})
	s.waitForConditions("thing", healthyConditions...)
	s.waitUntilIdle(m, "thing")
	assert.Equal(t, map[string]int{"get": 1, "patch": 2, "patch-apply": 1}, map[string]int(m.options.Source.Requests().Sub(before)))

	before = m.options.Source.Requests()
	mr, err := s.get("ManagedResource", "thing")
	require.NoError(t, err)
	require.NoError(t, s.resource(mr).Delete(s.ctx, "thing", metav1.DeleteOptions{}))
	s.waitForDeletion("ManagedResource", "thing")
	assert.Equal(t, map[string]int{"patch": 1, "delete": 4}, map[string]int(m.options.Source.Requests().Sub(before)))
}

// TestRestartWithoutChanges: after a restart without changes, no Secret is read and nothing is
// written. Changes during the downtime are detected.
func TestRestartWithoutChanges(t *testing.T) {
	s := newTestEnv(t)
	deployment := "{apiVersion: apps/v1, kind: Deployment, metadata: {name: app, namespace: NS}, spec: {replicas: 1, selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: c}]}}}}"
	s.createManagedResource("thing", configMap("a"), configMap("b"))
	s.createManagedResource("work", deployment)
	_, stop := s.startClass("")
	s.waitForConditions("thing", healthyConditions...)
	s.waitForConditions("work", "ResourcesApplied=True/ApplySucceeded")
	s.eventually("the version is noted", func() bool {
		mr, err := s.get("ManagedResource", "work")
		version, _, _ := unstructured.NestedString(mr.Object, "status", "secretsVersion")
		return err == nil && version != ""
	})
	stop()

	m, stop := s.startClass("")
	s.waitUntilIdle(m, "thing")
	s.waitUntilIdle(m, "work")
	requests := m.options.Source.Requests()
	assert.Zero(t, requests["get"])
	assert.Zero(t, requests.Writes())
	s.patch("ConfigMap", "a", "data: {a: other}")
	s.eventually("drift is seen", func() bool {
		o, err := s.get("ConfigMap", "a")
		v, _, _ := unstructured.NestedString(o.Object, "data", "a")
		return err == nil && v == "b"
	})
	stop()

	s.patch("ConfigMap", "b", "data: {a: other}")
	s.writeDataSecret("work", strings.Replace(deployment, "replicas: 1", "replicas: 2", 1))
	_, stop = s.startClass("")
	defer stop()
	s.eventually("both are repaired", func() bool {
		o, err := s.get("ConfigMap", "b")
		v, _, _ := unstructured.NestedString(o.Object, "data", "a")
		d, derr := s.get("Deployment", "app")
		if err != nil || derr != nil {
			return false
		}
		n, _, _ := unstructured.NestedInt64(d.Object, "spec", "replicas")
		return v == "b" && n == 2
	})
	s.waitForConditions("thing", healthyConditions...)
}

// TestSameContent: a Secret with the same content in another form changes nothing.
func TestSameContent(t *testing.T) {
	s := newTestEnv(t)
	s.createManagedResource("thing", configMap("a"), configMap("b"))
	m, stop := s.startClass("")
	defer stop()
	s.waitForConditions("thing", healthyConditions...)
	s.waitUntilIdle(m, "thing")
	before, err := s.get("ManagedResource", "thing")
	require.NoError(t, err)
	requests := m.options.Source.Requests()
	secret, err := s.get("Secret", "thing")
	require.NoError(t, err)
	text := strings.ReplaceAll("# a comment\n"+configMap("a")+"\n---\n"+configMap("b"), "NS", s.ns)
	secret.Object["data"] = map[string]any{"other.yaml.br": brotliCompress(t, text)}
	_, err = s.resource(secret).Update(s.ctx, secret, metav1.UpdateOptions{})
	require.NoError(t, err)
	s.eventually("it is read", func() bool { return m.options.Source.Requests()["get"] > requests["get"] })
	s.waitUntilIdle(m, "thing")
	assert.Equal(t, map[string]int{"get": 1}, map[string]int(m.options.Source.Requests().Sub(requests)))
	after, err := s.get("ManagedResource", "thing")
	require.NoError(t, err)
	assert.Equal(t, before.GetResourceVersion(), after.GetResourceVersion())
}

// TestObjectMovesBetweenManagedResources: an object that moves between two ManagedResources is not
// deleted, whichever changes first.
func TestObjectMovesBetweenManagedResources(t *testing.T) {
	for _, first := range []string{"giver", "taker"} {
		t.Run("first the "+first, func(t *testing.T) {
			s := newTestEnv(t)
			s.createManagedResource("giver", configMap("one"), configMap("moves"))
			s.createManagedResource("taker", configMap("two"))
			_, stop := s.startClass("")
			s.waitForConditions("giver", healthyConditions...)
			s.waitForConditions("taker", healthyConditions...)
			before, err := s.get("ConfigMap", "moves")
			require.NoError(t, err)
			stop() // both changes are made before the next start, or one after the other

			give := func() { s.writeDataSecret("giver", configMap("one")) }
			take := func() { s.writeDataSecret("taker", configMap("two"), configMap("moves")) }
			if first == "giver" {
				give()
				take()
			}
			_, stop = s.startClass("")
			defer stop()
			if first == "taker" {
				take()
				s.waitForConditions("taker", "ResourcesApplied=False/ApplyFailed")
				assert.Contains(t, s.conditionMessage("taker", "ResourcesApplied"), "ManagedResource "+s.ns+"/giver declares this object as well")
				s.waitForConditions("giver", healthyConditions...)
				give()
			}
			s.eventually("the taker has it", func() bool {
				o, err := s.get("ConfigMap", "moves")
				return err == nil && o.GetAnnotations()[resourcesv1alpha1.Origin] == s.ns+"/taker"
			})
			s.waitForConditions("giver", healthyConditions...)
			s.waitForConditions("taker", healthyConditions...)
			after, err := s.get("ConfigMap", "moves")
			require.NoError(t, err)
			assert.Equal(t, before.GetUID(), after.GetUID())

			// The object outlives the ManagedResource that it left.
			mr, err := s.get("ManagedResource", "giver")
			require.NoError(t, err)
			require.NoError(t, s.resource(mr).Delete(s.ctx, "giver", metav1.DeleteOptions{}))
			s.waitForDeletion("ManagedResource", "giver")
			_, err = s.get("ConfigMap", "moves")
			assert.NoError(t, err)
		})
	}
}

// TestClusterScopedObjectMoves: a namespace on a cluster-scoped object does not affect its
// owner.
func TestClusterScopedObjectMoves(t *testing.T) {
	s := newTestEnv(t)
	class := func(metadata string) string {
		return "{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: NS-class" + metadata + "}, value: 5}"
	}
	s.createManagedResource("giver", configMap("one"), class(", namespace: NS"))
	s.createManagedResource("taker", configMap("two"))
	_, stop := s.startClass("")
	defer stop()
	s.waitForConditions("giver", healthyConditions...)
	s.waitForConditions("taker", healthyConditions...)
	classes := s.api.Resource(schema.GroupVersionResource{Group: "scheduling.k8s.io", Version: "v1", Resource: "priorityclasses"})
	before, err := classes.Get(s.ctx, s.ns+"-class", metav1.GetOptions{})
	require.NoError(t, err)
	s.writeDataSecret("taker", configMap("two"), class(""))
	s.writeDataSecret("giver", configMap("one"))
	s.eventually("the taker has it", func() bool {
		o, err := classes.Get(s.ctx, s.ns+"-class", metav1.GetOptions{})
		return err == nil && o.GetAnnotations()[resourcesv1alpha1.Origin] == s.ns+"/taker"
	})
	after, err := classes.Get(s.ctx, s.ns+"-class", metav1.GetOptions{})
	require.NoError(t, err)
	assert.Equal(t, before.GetUID(), after.GetUID())
}

// TestInvalidManagedResourceBlocksNoDeletion: a ManagedResource with an invalid Secret name blocks
// no deletions of others.
func TestInvalidManagedResourceBlocksNoDeletion(t *testing.T) {
	s := newTestEnv(t)
	s.createManagedResource("thing", configMap("one"), configMap("two"))
	s.create("{apiVersion: resources.gardener.cloud/v1alpha1, kind: ManagedResource, metadata: {name: bad, namespace: NS}, spec: {secretRefs: [{name: ../x}]}}")
	s.create("{apiVersion: resources.gardener.cloud/v1alpha1, kind: ManagedResource, metadata: {name: empty, namespace: NS}, spec: {secretRefs: [{}]}}")
	_, stop := s.startClass("")
	defer stop()
	s.waitForConditions("thing", healthyConditions...)
	s.waitForConditions("bad", "ResourcesApplied=False/CannotReadSecret")
	s.writeDataSecret("thing", configMap("one"))
	s.waitForDeletion("ConfigMap", "two")
	s.waitForConditions("thing", healthyConditions...)
}

// TestTextAfterDocumentEnd: text after the end of a document is an error, for which nothing is
// deleted.
func TestTextAfterDocumentEnd(t *testing.T) {
	s := newTestEnv(t)
	s.createManagedResource("thing", configMap("one"), configMap("two"))
	_, stop := s.startClass("")
	defer stop()
	s.waitForConditions("thing", healthyConditions...)
	for _, separator := range []string{"--- # a comment\n", "---\t\n"} {
		s.writeDataSecret("thing", "# again\n"+configMap("one")+separator+configMap("two"))
		s.waitForConditions("thing", healthyConditions...)
		s.waitForObject("ConfigMap", "two")
	}
	flow := func(name string) string {
		return "{apiVersion: v1, kind: ConfigMap, metadata: {name: " + name + ", namespace: NS}, data: {a: b}}\n"
	}
	s.writeDataSecret("thing", flow("one")+flow("two"))
	s.waitForConditions("thing", "ResourcesApplied=False/DecodingFailed")
	s.waitForObject("ConfigMap", "two")
	s.writeDataSecret("thing", strings.NewReplacer("apiVersion: v1", `"apiVersion": "v1"`, "kind: ConfigMap", `"kind": "ConfigMap"`, "metadata: {name: ", `"metadata": {"name": "`, ", namespace: NS}", `", "namespace": "NS"}`, "data: {a: b}", `"data": {"a": "b"}`).Replace(flow("one")+flow("two")))
	s.waitForConditions("thing", healthyConditions...)
	s.waitForObject("ConfigMap", "two")
}

// TestObjectWithoutManagedByLabel: an object is found even without the label that selects it.
func TestObjectWithoutManagedByLabel(t *testing.T) {
	s := newTestEnv(t)
	s.createManagedResource("thing", configMap("one"))
	m, stop := s.startClass("")
	defer stop()
	s.waitForConditions("thing", healthyConditions...)
	s.patch("ConfigMap", "one", "{metadata: {labels: {resources.gardener.cloud/managed-by: null}}, data: {a: hand}}")
	s.eventually("it is as it should be", func() bool {
		o, err := s.get("ConfigMap", "one")
		v, _, _ := unstructured.NestedString(o.Object, "data", "a")
		return err == nil && v == "b" && o.GetLabels()[resourcesv1alpha1.ManagedBy] == "gardener"
	})
	s.waitForConditions("thing", healthyConditions...)
	s.waitUntilIdle(m, "thing")
}

// TestInvalidObjectBlocksNoOther checks that an invalid object does not block the others.
func TestInvalidObjectBlocksNoOther(t *testing.T) {
	s := newTestEnv(t)
	s.createManagedResource("thing", configMap("one"), configMap("twice"))
	_, stop := s.startClass("")
	defer stop()
	s.waitForConditions("thing", healthyConditions...)
	s.writeDataSecret("thing", configMap("one"), configMap("new"), configMap("one"), configMap("twice"), strings.ReplaceAll(configMap("twice"), "a: b", "a: c"),
		strings.ReplaceAll(configMap("odd"), "namespace: NS", "namespace: NS, annotations: {a: 1}"))
	s.waitForObject("ConfigMap", "new")
	s.waitForConditions("thing", "ResourcesApplied=False/ApplyFailed")
	assert.Contains(t, s.conditionMessage("thing", "ResourcesApplied"), "declared twice")
	assert.Contains(t, s.conditionMessage("thing", "ResourcesApplied"), "metadata.annotations")
	_, err := s.get("ConfigMap", "twice")
	assert.NoError(t, err)
}

// TestUndeletableObject: an object that cannot be deleted is named and blocks nothing else.
func TestUndeletableObject(t *testing.T) {
	s := newTestEnv(t)
	stuck := strings.ReplaceAll(configMap("stuck"), "namespace: NS", "namespace: NS, finalizers: [example.com/never]")
	s.createManagedResource("thing", stuck, configMap("goes"), configMap("stays"))
	_, stop := s.startClass("")
	defer stop()
	s.waitForConditions("thing", healthyConditions...)
	s.writeDataSecret("thing", configMap("stays"), configMap("comes"))
	began := time.Now()
	s.waitForDeletion("ConfigMap", "goes")
	s.waitForObject("ConfigMap", "comes")
	s.waitForConditions("thing", "ResourcesApplied=Progressing/DeletionPending", "ResourcesHealthy=True/ResourcesHealthy")
	assert.Less(t, time.Since(began), deleteTimeout)
	assert.Contains(t, s.conditionMessage("thing", "ResourcesApplied"), "example.com/never")
	s.writeDataSecret("thing", configMap("stays"), configMap("comes"), configMap("more"))
	s.waitForObject("ConfigMap", "more")

	mr, err := s.get("ManagedResource", "thing")
	require.NoError(t, err)
	require.NoError(t, s.resource(mr).Delete(s.ctx, "thing", metav1.DeleteOptions{}))
	s.waitForDeletion("ConfigMap", "stays")
	s.waitForConditions("thing", "ResourcesApplied=Progressing/DeletionPending", "ResourcesHealthy=False/DeletionPending", "ResourcesProgressing=True/DeletionPending")
	s.patch("ConfigMap", "stuck", "metadata: {finalizers: null}")
	s.waitForDeletion("ManagedResource", "thing")
}

// TestRepeatedFailureLeavesStatus: repeated equal failures do not change the status, so that it
// shows when they began.
func TestRepeatedFailureLeavesStatus(t *testing.T) {
	s := newTestEnv(t)
	s.createManagedResource("thing", configMap("fine"), "{apiVersion: v1, kind: Service, metadata: {name: wrong, namespace: NS}, spec: {type: Nothing, ports: [{port: 1}]}}")
	m, stop := s.startClass("")
	defer stop()
	s.waitForConditions("thing", "ResourcesApplied=False/ApplyFailed")
	s.waitForObject("ConfigMap", "fine")
	assert.Contains(t, s.conditionMessage("thing", "ResourcesApplied"), "spec.type")
	before, err := s.get("ManagedResource", "thing")
	require.NoError(t, err)
	tries := m.options.Source.Requests()["patch-apply"]
	s.eventually("it is tried again", func() bool { return m.options.Source.Requests()["patch-apply"] >= tries+2 })
	after, err := s.get("ManagedResource", "thing")
	require.NoError(t, err)
	assert.Equal(t, before.GetResourceVersion(), after.GetResourceVersion())
}

// TestWriteConflictIsReported: a manager that keeps changing an object back is named, and repairs
// become less frequent.
func TestWriteConflictIsReported(t *testing.T) {
	s := newTestEnv(t)
	s.createManagedResource("thing", configMap("one"), configMap("two"))
	m, stop := s.startClass("")
	defer stop()
	s.waitForConditions("thing", healthyConditions...)
	giveUp := s.startRival()
	s.waitForConditions("thing", "ResourcesApplied=True/ApplySucceeded", "ResourcesProgressing=True/ConfigMapContested")
	assert.Contains(t, s.conditionMessage("thing", "ResourcesProgressing"), "ConfigMap "+s.ns+"/one: rival changes data.a repeatedly")
	writes := m.options.Source.Requests()["patch-apply"]
	assert.Less(t, writes, 2*conflictThreshold+2)

	giveUp()
	s.eventually("it is repaired", func() bool {
		o, err := s.get("ConfigMap", "one")
		v, _, _ := unstructured.NestedString(o.Object, "data", "a")
		return err == nil && v == "b"
	})
}

// startRival changes ConfigMap one back at once, until the returned function is called.
func (s *testEnv) startRival() (giveUp func()) {
	s.Helper()
	ctx, cancel := context.WithCancel(s.ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		list := s.api.Resource(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}).Namespace(s.ns)
		w, err := list.Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=one"})
		if err != nil {
			return
		}
		defer w.Stop()
		for range w.ResultChan() {
			_, _ = list.Patch(ctx, "one", types.MergePatchType, []byte(`{"data":{"a":"mine"}}`), metav1.PatchOptions{FieldManager: "rival"})
		}
	}()
	s.patch("ConfigMap", "one", "data: {a: mine}")
	return func() { cancel(); <-ended }
}

// TestWriteConflictDuringRollout: a rollout does not hide a fight.
func TestWriteConflictDuringRollout(t *testing.T) {
	s := newTestEnv(t)
	s.createManagedResource("thing", configMap("one"), "{apiVersion: apps/v1, kind: Deployment, metadata: {name: app, namespace: NS}, spec: {replicas: 1, selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: c}]}}}}")
	_, stop := s.startClass("")
	defer stop()
	s.waitForConditions("thing", "ResourcesApplied=True/ApplySucceeded", "ResourcesProgressing=True/DeploymentProgressing")
	defer s.startRival()()
	s.waitForConditions("thing", "ResourcesProgressing=True/ConfigMapContested")
	assert.Contains(t, s.conditionMessage("thing", "ResourcesProgressing"), "rival changes data.a repeatedly")
	assert.Contains(t, s.conditionMessage("thing", "ResourcesProgressing"), "Besides: Deployment ")
}

// TestUpstreamDefinitionWithoutDigests: with upstream's definition of ManagedResources, which lacks
// our digests, objects are not sent repeatedly either.
func TestUpstreamDefinitionWithoutDigests(t *testing.T) {
	s := newTestEnv(t)
	definitions := s.api.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	crd, err := definitions.Get(s.ctx, "managedresources.resources.gardener.cloud", metav1.GetOptions{})
	require.NoError(t, err)
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	properties := []string{"schema", "openAPIV3Schema", "properties", "status", "properties", "resources", "items", "properties"}
	schemas, found, _ := unstructured.NestedMap(versions[0].(map[string]any), properties...)
	require.True(t, found)
	change := func(fields map[string]any) {
		live, err := definitions.Get(s.ctx, crd.GetName(), metav1.GetOptions{})
		require.NoError(t, err)
		list, _, _ := unstructured.NestedSlice(live.Object, "spec", "versions")
		require.NoError(t, unstructured.SetNestedMap(list[0].(map[string]any), fields, properties...))
		require.NoError(t, unstructured.SetNestedSlice(live.Object, list, "spec", "versions"))
		_, err = definitions.Update(s.ctx, live, metav1.UpdateOptions{})
		require.NoError(t, err)
	}
	upstream := map[string]any{}
	for name, field := range schemas {
		if name != "appliedDigest" && name != "liveDigest" && name != "createOnly" {
			upstream[name] = field
		}
	}
	change(upstream)
	defer change(schemas)
	n := 0
	digests := func(name string) int {
		mr, err := s.get("ManagedResource", name)
		require.NoError(t, err)
		return strings.Count(fmt.Sprint(mr.Object["status"]), "liveDigest")
	}
	m, stop := s.startClass("")
	defer stop()
	s.eventually("the API server has the definition", func() bool { // it takes a moment
		n++
		name := fmt.Sprintf("thing%d", n)
		s.createManagedResource(name, configMap(name))
		s.waitForConditions(name, healthyConditions...)
		return digests(name) == 0
	})
	name := fmt.Sprintf("thing%d", n)
	s.waitUntilIdle(m, name)
	before := m.options.Source.Requests()
	m.enqueue(types.NamespacedName{Namespace: s.ns, Name: name}, true)
	s.waitUntilIdle(m, name)
	assert.Empty(t, m.options.Source.Requests().Sub(before))

	// A change during the downtime is reverted, although the new process does not know the applied
	// objects.
	stop()
	live, err := s.get("ConfigMap", name)
	require.NoError(t, err)
	_, err = s.resource(live).Patch(s.ctx, name, types.MergePatchType, []byte(`{"data":{"a":"theirs"}}`), metav1.PatchOptions{FieldManager: "kubectl-patch"})
	require.NoError(t, err)
	_, stop = s.startClass("")
	defer stop()
	s.eventually("it is taken back", func() bool { return s.configMapData(name)["a"] == "b" })
	s.waitForConditions(name, healthyConditions...)
}
