// SPDX-License-Identifier: Apache-2.0

package landscape

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/pergola-dev/pergola/api/crds"
	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/controllers/conventions"
	"github.com/pergola-dev/pergola/controllers/owner"
)

// gardenDeletionTest is a Garden in deletion.
type gardenDeletionTest struct {
	*gardenRequests
	objects dynamic.Interface
}

func newGardenDeletionTest(t *testing.T) *gardenDeletionTest {
	t.Helper()
	needsServer(t)
	garden := strings.Replace(derivedGarden, "spec:\n", "spec:\n  dns: {providers: [{name: primary, type: local, secretRef: {name: dns}}]}\n", 1)
	garden = strings.Replace(garden, "{name: derived.example}", "{name: derived.example, provider: primary}", 1)
	d := newDerivedLandscape(t, map[string]string{"garden.yaml": garden}, caRequest)
	objects, err := dynamic.NewForConfig(d.runtime)
	require.NoError(t, err)
	e := &gardenDeletionTest{&gardenRequests{d, objects.Resource(schema.GroupVersionResource{Group: "operator.gardener.cloud", Version: "v1alpha1", Resource: "gardens"})}, objects}
	_, err = d.client.CoreV1().Namespaces().Create(testContext(t), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "garden"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = d.client.CoreV1().Secrets("garden").Create(testContext(t), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "dns"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	d.createAccess()
	d.deleteObjectsAtEnd("inside")
	require.NoError(t, e.apply())
	return e
}

func (e *gardenDeletionTest) apply() error {
	_, err := e.converger.Apply(testContext(e.T))
	return err
}

func (e *gardenDeletionTest) annotate(key string) {
	e.Helper()
	_, err := e.gardens.Patch(testContext(e.T), "derived", types.MergePatchType, []byte(`{"metadata":{"annotations":{"`+key+`":"true"}}}`), metav1.PatchOptions{})
	require.NoError(e, err)
}

// createSilentAPIServer creates the workload of the virtual garden's API server, which does not
// answer.
func (e *gardenDeletionTest) createSilentAPIServer() {
	e.Helper()
	ctx := testContext(e.T)
	labels := map[string]string{"app": "x"}
	_, err := e.client.AppsV1().Deployments("garden").Create(ctx, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "virtual-garden-kube-apiserver"}, Spec: appsv1.DeploymentSpec{
		Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}}},
	}}, metav1.CreateOptions{})
	require.NoError(e, err)
	_, err = envtest.InstallCRDs(e.runtime, envtest.CRDInstallOptions{CRDs: crds.ByGroup("druid.gardener.cloud")})
	require.NoError(e, err)
	etcd := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "druid.gardener.cloud/v1alpha1", "kind": "Etcd", "metadata": map[string]any{"name": "virtual-garden-etcd-main"},
		"spec": map[string]any{"replicas": int64(1), "labels": map[string]any{"a": "b"}, "selector": map[string]any{"matchLabels": map[string]any{"a": "b"}}, "etcd": map[string]any{}, "backup": map[string]any{}}}}
	_, err = e.objects.Resource(schema.GroupVersionResource{Group: "druid.gardener.cloud", Version: "v1alpha1", Resource: "etcds"}).Namespace("garden").Create(ctx, etcd, metav1.CreateOptions{})
	require.NoError(e, err)
	e.converger.connections.clusters[Runtime].ResetMapping()
	nobody, err := conventions.NewCluster(Virtual, &rest.Config{Host: "https://127.0.0.1:1"}, apply.ClusterOptions{Cooldown: time.Millisecond})
	require.NoError(e, err)
	e.Cleanup(nobody.Close)
	e.converger.members.all[0].Target = nobody
}

func (e *gardenDeletionTest) lastOperation() map[string]any {
	e.Helper()
	out, _, err := unstructured.NestedMap(e.garden().Object, "status", "lastOperation")
	require.NoError(e, err)
	return out
}

func (e *gardenDeletionTest) hasConfigMap(name string) bool {
	e.Helper()
	_, err := e.client.CoreV1().ConfigMaps("default").Get(testContext(e.T), name, metav1.GetOptions{})
	if !apierrors.IsNotFound(err) {
		require.NoError(e, err)
	}
	return err == nil
}

// TestGardenIsDeleted checks that a watched landscape detects the deletion of its Garden. Nothing
// is deleted before the confirmation, or while the use of the virtual garden is unknown. The
// annotation for a forced deletion deletes everything.
func TestGardenIsDeleted(t *testing.T) {
	e := newGardenDeletionTest(t)
	told := make(chan struct{}, 9)
	watching, stop := context.WithCancel(testContext(t))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		e.converger.WatchGardenRequests(watching, func() { told <- struct{}{} })
	}()
	keeping := make(chan error, 1)
	go func() { keeping <- e.converger.Maintain(watching) }()
	require.NoError(t, e.gardens.Delete(testContext(t), "derived", metav1.DeleteOptions{}))
	<-told
	stop()
	<-ended
	require.NoError(t, <-keeping)

	err := e.apply()
	require.ErrorContains(t, err, "garden derived is being deleted: ")
	assert.Equal(t, "Delete", e.lastOperation()["type"])
	assert.Equal(t, "Error", e.lastOperation()["state"])
	assert.Contains(t, e.lastOperation()["description"], "kubectl annotate garden derived confirmation.gardener.cloud/deletion=true")
	assert.True(t, e.hasConfigMap("first"))

	e.annotate(owner.AnnotationConfirmDeletion)
	e.createSilentAPIServer()
	e.converger.members.reconciler.StepTimeout = 500 * time.Millisecond
	require.Error(t, e.apply())
	assert.Contains(t, e.lastOperation()["description"], "cannot list Seeds and Shoots in the virtual garden: ")
	assert.Contains(t, e.lastOperation()["description"], "confirmation.gardener.cloud/force-deletion=true")
	assert.True(t, e.hasConfigMap("first"), "and nobody has begun")
	secret, err := e.client.CoreV1().Secrets("garden").Get(testContext(t), "dns", metav1.GetOptions{})
	require.NoError(t, err)
	assert.Equal(t, []string{"gardener.cloud/reference-protection"}, secret.Finalizers, "it may be needed yet")

	e.annotate(owner.AnnotationForceDeletion)
	e.converger.members.reconciler.StepTimeout = 10 * time.Second
	require.NoError(t, e.apply())
	assert.False(t, e.hasConfigMap("first"))
	_, err = e.gardens.Get(testContext(t), "derived", metav1.GetOptions{})
	assert.True(t, apierrors.IsNotFound(err), "%v", err)
	assert.Empty(t, e.generatedSecretNames())
	secret, err = e.client.CoreV1().Secrets("garden").Get(testContext(t), "dns", metav1.GetOptions{})
	require.NoError(t, err)
	assert.Empty(t, secret.Finalizers)
	assert.True(t, e.converger.HasDeletedGarden())

	e.converger.members.all[0].Target = e.converger.connections.clusters[Virtual]
	require.NoError(t, e.apply(), "Git declares it still: it is made anew")
	assert.Nil(t, e.garden().GetDeletionTimestamp())
	assert.True(t, e.hasConfigMap("first"))
}

// TestVirtualGardenFailsDuringDeletion checks that a virtual garden that fails after the check for
// its use does not block the deletion.
func TestVirtualGardenFailsDuringDeletion(t *testing.T) {
	e := newGardenDeletionTest(t)
	e.createSilentAPIServer()
	e.converger.members.all[0].Target = e.converger.connections.clusters[Virtual]
	e.annotate(owner.AnnotationConfirmDeletion)
	require.NoError(t, e.gardens.Delete(testContext(t), "derived", metav1.DeleteOptions{}))
	_, err := resourceClient(t, configMapResource, "default").Patch(testContext(t), "inside", types.MergePatchType, []byte(`{"metadata":{"finalizers":["example.org/stuck"]}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	t.Cleanup(func() {
		_, _ = resourceClient(t, configMapResource, "default").Patch(context.Background(), "inside", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	})
	e.converger.members.reconciler.StepTimeout = 12 * time.Second
	report, err := e.converger.Apply(testContext(t))
	require.NoError(t, err)
	require.Len(t, report.Owners, 1)
	assert.Contains(t, strings.Join(report.Owners[0].Notes, "\n"), "its remaining objects in the virtual garden end with its etcd: ")
	assert.False(t, e.hasConfigMap("first"))
}

func TestHasNewRequest(t *testing.T) {
	garden := func(deleted bool, annotations ...string) *unstructured.Unstructured {
		o := &unstructured.Unstructured{Object: map[string]any{}}
		if deleted {
			now := metav1.Now()
			o.SetDeletionTimestamp(&now)
		}
		all := map[string]string{}
		for _, a := range annotations {
			all[a] = "true"
		}
		o.SetAnnotations(all)
		return o
	}
	for name, c := range map[string]struct {
		old, now *unstructured.Unstructured
		want     bool
	}{
		"gone":              {garden(true), nil, false},
		"seen first":        {nil, garden(false), false},
		"seen with one":     {nil, garden(false, annotationOperation), true},
		"seen confirmed":    {nil, garden(false, owner.AnnotationConfirmDeletion), false},
		"nothing":           {garden(false), garden(false), false},
		"deleted":           {garden(false), garden(true), true},
		"deleted before":    {garden(true), garden(true), false},
		"confirmed":         {garden(true), garden(true, owner.AnnotationConfirmDeletion), true},
		"given up":          {garden(true, owner.AnnotationConfirmDeletion), garden(true, owner.AnnotationConfirmDeletion, owner.AnnotationForceDeletion), true},
		"asked before":      {garden(false, annotationOperation), garden(false, annotationOperation), false},
		"asked for nothing": {garden(false, annotationOperation), garden(false), false},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, c.want, hasNewRequest(c.old, c.now)) })
	}
}
