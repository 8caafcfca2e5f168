// SPDX-License-Identifier: Apache-2.0

package etcds

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
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
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"

	"github.com/pergola-dev/pergola/hack/local/cluster"
	"github.com/pergola-dev/pergola/hack/local/living/livingtest"
)

// testCluster is a real API server and controller manager with the controller under test; the test
// plays the kubelet.
type testCluster struct {
	t       *testing.T
	kube    kubernetes.Interface
	dynamic dynamic.Interface
	members *fakeMembership
}

// fakeMembership is a fake etcd that executes every request at once.
type fakeMembership struct {
	mu    sync.Mutex
	etcd  *etcd
	peers []peer
}

func (o *fakeMembership) List(context.Context) ([]peer, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for i := range o.peers {
		o.peers[i].Name = o.etcd.member(int32(i)) // added members have started
	}
	return append([]peer(nil), o.peers...), nil
}

func (o *fakeMembership) AddLearner(_ context.Context, url string) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.peers = append(o.peers, peer{ID: uint64(len(o.peers)), URLs: []string{url}, Learner: true})
	return nil
}

func (o *fakeMembership) Promote(_ context.Context, id uint64) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.peers[id].Learner = false
	return nil
}

func (o *fakeMembership) Update(context.Context, uint64, string) error { return nil }
func (o *fakeMembership) Close() error                                 { return nil }

func newWorld(t *testing.T) testCluster {
	t.Helper()
	config := livingtest.Start(t, cluster.PartControllerManager)
	w := testCluster{t: t, kube: kubernetes.NewForConfigOrDie(config), dynamic: dynamic.NewForConfigOrDie(config), members: &fakeMembership{}}
	w.create("crds-gardener/customresourcedefinition.apiextensions.k8s.io-etcds.druid.gardener.cloud", "apiextensions.k8s.io", "customresourcedefinitions")
	// No server answers this webhook.
	w.create("etcd-druid/validatingwebhookconfiguration.admissionregistration.k8s.io-etcd-druid", "admissionregistration.k8s.io", "validatingwebhookconfigurations")

	c := New(Options{Kube: w.kube, Dynamic: w.dynamic, Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
		connect: func(_ context.Context, _ kubernetes.Interface, e *etcd) (membership, error) {
			w.members.mu.Lock()
			defer w.members.mu.Unlock()
			w.members.etcd = e
			if w.members.peers == nil {
				w.members.peers = []peer{{ID: 0, URLs: []string{e.peerURL(0)}}}
			}
			return w.members, nil
		}})
	ctx, cancel := context.WithCancel(context.Background())
	var group sync.WaitGroup
	group.Go(func() { assert.NoError(t, c.Run(ctx)) })
	group.Go(func() { w.playKubelet(ctx) })
	t.Cleanup(func() { cancel(); group.Wait() })
	return w
}

// create creates an object of the local landscape's Garden.
func (w testCluster) create(file, group, resource string) {
	w.t.Helper()
	data, err := os.ReadFile(filepath.Join(livingtest.Module(), "..", "..", "landscapes", "local", "golden", "runtime", "garden", file+".yaml"))
	require.NoError(w.t, err)
	object := &unstructured.Unstructured{}
	require.NoError(w.t, yaml.Unmarshal(data, &object.Object))
	kind := schema.GroupVersionResource{Group: group, Version: "v1", Resource: resource}
	_, err = w.dynamic.Resource(kind).Create(w.t.Context(), object, metav1.CreateOptions{})
	require.NoError(w.t, err)
}

// playKubelet makes all Pods ready.
func (w testCluster) playKubelet(ctx context.Context) {
	for ctx.Err() == nil {
		pods, err := w.kube.CoreV1().Pods("default").List(ctx, metav1.ListOptions{})
		if err == nil {
			for _, pod := range pods.Items {
				if pod.Status.Phase != corev1.PodRunning {
					pod.Status.Phase = corev1.PodRunning
					pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
					_, _ = w.kube.CoreV1().Pods("default").UpdateStatus(ctx, &pod, metav1.UpdateOptions{})
				}
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func (w testCluster) etcd() *etcd {
	w.t.Helper()
	object, err := w.dynamic.Resource(Resource).Namespace("default").Get(w.t.Context(), "main", metav1.GetOptions{})
	require.NoError(w.t, err)
	e, err := parseEtcd(object)
	require.NoError(w.t, err)
	return e
}

func (w testCluster) patch(format string, args ...any) {
	w.t.Helper()
	_, err := w.dynamic.Resource(Resource).Namespace("default").Patch(w.t.Context(), "main", types.MergePatchType, fmt.Appendf(nil, format, args...), metav1.PatchOptions{})
	require.NoError(w.t, err)
}

const reconcilePatch = `"metadata":{"annotations":{"gardener.cloud/operation":"reconcile"}}`

func (w testCluster) await(what string, condition func(e *etcd) bool) *etcd {
	w.t.Helper()
	var last *etcd
	if !assert.Eventually(w.t, func() bool { last = w.etcd(); return condition(last) }, time.Minute, 50*time.Millisecond, what) {
		data, _ := json.MarshalIndent(last, "", " ")
		w.t.Fatalf("%s", data)
	}
	return last
}

func (w testCluster) statefulSet() *appsv1.StatefulSet {
	w.t.Helper()
	set, err := w.kube.AppsV1().StatefulSets("default").Get(w.t.Context(), "main", metav1.GetOptions{})
	require.NoError(w.t, err)
	return set
}

func ready(replicas int32) func(*etcd) bool {
	return func(e *etcd) bool {
		s := e.Status
		return !e.hasReconcileRequest() && s.Ready != nil && *s.Ready && s.ReadyReplicas == replicas && s.ObservedGeneration != nil && *s.ObservedGeneration == e.Generation
	}
}

func conditionOf(e *etcd, kind string) string {
	for _, c := range e.Status.Conditions {
		if c.Type == kind {
			return c.Status
		}
	}
	return ""
}

// TestEtcdLifecycle checks the life of an Etcd on a real API server. The steps build on each other.
func TestEtcdLifecycle(t *testing.T) {
	w := newWorld(t)
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "druid.gardener.cloud/v1alpha1", "kind": "Etcd",
		"metadata": map[string]any{"name": "main", "annotations": map[string]any{operationAnnotation: reconcileOperation}},
		"spec": map[string]any{
			"replicas": int64(1), "labels": map[string]any{"role": "main"}, "selector": map[string]any{"matchLabels": map[string]any{"role": "main"}},
			"backup": map[string]any{}, "etcd": map[string]any{"quota": "8Gi"},
		},
	}}
	require.Eventually(t, func() bool {
		_, err := w.dynamic.Resource(Resource).Namespace("default").Create(t.Context(), object, metav1.CreateOptions{})
		return err == nil
	}, 30*time.Second, 50*time.Millisecond)
	e := w.await("one member is ready", ready(1))
	assert.Contains(t, e.Finalizers, finalizer)
	for _, kind := range []string{"Ready", "AllMembersReady", "AllMembersUpdated", "BackupReady"} {
		assert.Equal(t, statusTrue, conditionOf(e, kind), kind)
	}
	assert.Equal(t, "Create", e.Status.LastOperation.Type)
	assert.Equal(t, "Succeeded", e.Status.LastOperation.State)
	for _, name := range []string{"main-client", "main-peer"} {
		service, err := w.kube.CoreV1().Services("default").Get(t.Context(), name, metav1.GetOptions{})
		require.NoError(t, err)
		assert.Equal(t, "main", service.OwnerReferences[0].Name)
	}
	quiet := w.etcd().ResourceVersion
	generation := w.statefulSet().Generation
	require.Never(t, func() bool { return w.etcd().ResourceVersion != quiet }, time.Second, 200*time.Millisecond, "nothing is written without need")
	assert.Equal(t, generation, w.statefulSet().Generation)

	w.patch(`{"spec":{"replicas":3}}`)
	require.Never(t, func() bool {
		return *w.statefulSet().Spec.Replicas != 1 || *w.etcd().Status.ObservedGeneration == w.etcd().Generation
	},
		time.Second, 100*time.Millisecond, "a change waits until it is asked for")
	w.patch(`{%s}`, reconcilePatch)
	w.await("three members are ready", ready(3))
	assert.Equal(t, map[string]string{foundersAnnotation: "1", votersAnnotation: "3"}, w.statefulSet().Annotations)
	assert.Len(t, w.members.peers, 3)

	w.patch(`{%s,"spec":{"etcd":{"quota":"4Gi"}}}`, reconcilePatch)
	w.await("a new configuration is rolled out", func(e *etcd) bool { return ready(3)(e) && w.statefulSet().Status.UpdatedReplicas == 3 })

	w.patch(`{"metadata":{"annotations":{"local.pergola.dev/fail":"no quorum"}}}`)
	e = w.await("it fails as it is told", func(e *etcd) bool { return e.Status.Ready != nil && !*e.Status.Ready })
	assert.Equal(t, "no quorum", e.Status.LastErrors[0].Description)
	assert.Equal(t, statusFalse, conditionOf(e, "Ready"))
	w.patch(`{"metadata":{"annotations":{"local.pergola.dev/fail":null}}}`)
	e = w.await("it heals", ready(3))
	assert.Empty(t, e.Status.LastErrors)

	w.patch(`{%s,"spec":{"replicas":0}}`, reconcilePatch)
	e = w.await("it sleeps", ready(0))
	assert.Equal(t, statusTrue, conditionOf(e, "AllMembersUpdated"))
	assert.Len(t, w.claims(), 3, "who sleeps keeps the volumes")
	w.patch(`{%s,"spec":{"replicas":3}}`, reconcilePatch)
	w.await("it wakes up", ready(3))
	assert.Len(t, w.members.peers, 3, "those that wake up are members already")

	require.NoError(t, w.dynamic.Resource(Resource).Namespace("default").Delete(t.Context(), "main", metav1.DeleteOptions{}))
	w.awaitGone()
}

func (w testCluster) claims() []corev1.PersistentVolumeClaim {
	w.t.Helper()
	claims, err := w.kube.CoreV1().PersistentVolumeClaims("default").List(w.t.Context(), metav1.ListOptions{})
	require.NoError(w.t, err)
	return claims.Items
}

func (w testCluster) awaitGone() {
	w.t.Helper()
	require.Eventually(w.t, func() bool {
		_, err := w.dynamic.Resource(Resource).Namespace("default").Get(w.t.Context(), "main", metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	}, time.Minute, 50*time.Millisecond)
	assert.Empty(w.t, w.claims())
	for _, left := range []struct {
		resource schema.GroupVersionResource
		name     string
	}{{statefulSets, "main"}, {services, "main-client"}, {services, "main-peer"}, {configMaps, "main-config"}, {budgets, "main"}} {
		_, err := w.dynamic.Resource(left.resource).Namespace("default").Get(w.t.Context(), left.name, metav1.GetOptions{})
		assert.True(w.t, apierrors.IsNotFound(err), left.name)
	}
}
