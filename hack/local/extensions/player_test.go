// SPDX-License-Identifier: Apache-2.0

package extensions

import (
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/pergola-dev/pergola/hack/local/living/livingtest"
)

// testCluster is a real API server with a running Player.
type testCluster struct {
	*testing.T
	client dynamic.Interface
}

func (w testCluster) resource(plural string) dynamic.ResourceInterface {
	resource := schema.GroupVersionResource{Group: apiGroup, Version: "v1alpha1", Resource: plural}
	if plural == "secrets" {
		resource = secretsResource
	}
	return w.client.Resource(resource).Namespace("default")
}

func (w testCluster) create(plural, text string) {
	w.Helper()
	object := &unstructured.Unstructured{}
	require.NoError(w, yaml.Unmarshal([]byte(text), &object.Object))
	_, err := w.resource(plural).Create(w.Context(), object, metav1.CreateOptions{})
	require.NoError(w, err)
}

func (w testCluster) patch(plural, name string, change map[string]any, sub ...string) {
	w.Helper()
	raw, err := json.Marshal(change)
	require.NoError(w, err)
	_, err = w.resource(plural).Patch(w.Context(), name, types.MergePatchType, raw, metav1.PatchOptions{}, sub...)
	require.NoError(w, err)
}

func (w testCluster) annotate(plural, name string, annotations map[string]any) {
	w.Helper()
	w.patch(plural, name, map[string]any{"metadata": map[string]any{"annotations": annotations}})
}

// await watches an object until it satisfies good; nil means that it does not exist.
func (w testCluster) await(plural, name, what string, good func(live *unstructured.Unstructured) bool) *unstructured.Unstructured {
	w.Helper()
	ctx, cancel := context.WithTimeout(w.Context(), time.Minute)
	defer cancel()
	events, err := w.resource(plural).Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + name})
	require.NoError(w, err)
	defer events.Stop()
	var last *unstructured.Unstructured
	for event := range events.ResultChan() {
		live, is := event.Object.(*unstructured.Unstructured)
		require.True(w, is, "%v", event.Object)
		last = live
		if event.Type == watch.Deleted {
			live = nil
		}
		if good(live) {
			return live
		}
	}
	require.FailNow(w, "not in time: "+what, "%v", last)
	return nil
}

func (w testCluster) awaitSuccess(plural, name, kind string) *unstructured.Unstructured {
	w.Helper()
	return w.await(plural, name, kind+" succeeds", func(live *unstructured.Unstructured) bool {
		return live != nil && nestedString(live, "status", "lastOperation", "state") == "Succeeded" && nestedString(live, "status", "lastOperation", "type") == kind &&
			live.GetAnnotations()[annotationOperation] == ""
	})
}

func (w testCluster) awaitError(plural, name, message string) *unstructured.Unstructured {
	w.Helper()
	return w.await(plural, name, "it fails: "+message, func(live *unstructured.Unstructured) bool {
		return live != nil && nestedString(live, "status", "lastOperation", "state") == "Error" && nestedString(live, "status", "lastError", "description") == message
	})
}

func TestPlayer(t *testing.T) {
	config := livingtest.Start(t)
	w := testCluster{t, dynamic.NewForConfigOrDie(config)}
	player := New(Options{Client: w.client, Log: slog.New(slog.NewTextHandler(t.Output(), nil))})
	ctx, cancel := context.WithCancel(context.Background())
	var group sync.WaitGroup
	group.Go(func() { assert.NoError(t, player.Run(ctx)) })
	t.Cleanup(func() { cancel(); group.Wait() })
	for _, plural := range []string{"infrastructures", "networks"} {
		raw, err := os.ReadFile(filepath.Join(livingtest.Module(), "..", "..", "api", "crds", "extensions.gardener.cloud_"+plural+".yaml"))
		require.NoError(t, err)
		definition := &unstructured.Unstructured{}
		require.NoError(t, yaml.Unmarshal(raw, &definition.Object))
		_, err = w.client.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}).Create(t.Context(), definition, metav1.CreateOptions{})
		require.NoError(t, err)
		require.Eventually(t, func() bool {
			_, err := w.resource(plural).List(t.Context(), metav1.ListOptions{})
			return err == nil
		}, time.Minute, 50*time.Millisecond)
	}

	t.Run("it obeys the request alone", func(t *testing.T) {
		w := testCluster{t, w.client}
		w.create("networks", "{apiVersion: extensions.gardener.cloud/v1alpha1, kind: Network, metadata: {name: a}, spec: {type: local, podCIDR: 10.0.0.0/16, serviceCIDR: 10.1.0.0/16}}")
		w.create("networks", "{apiVersion: extensions.gardener.cloud/v1alpha1, kind: Network, metadata: {name: b, annotations: {gardener.cloud/operation: wait-for-state}}, spec: {type: local, podCIDR: 10.0.0.0/16, serviceCIDR: 10.1.0.0/16}}")
		w.create("networks", "{apiVersion: extensions.gardener.cloud/v1alpha1, kind: Network, metadata: {name: c, annotations: {gardener.cloud/operation: reconcile}}, spec: {type: local, podCIDR: 10.0.0.0/16, serviceCIDR: 10.1.0.0/16}}")
		made := w.awaitSuccess("networks", "c", "Create") // the others are older
		assert.Equal(t, []string{"extensions.gardener.cloud/network"}, made.GetFinalizers())
		for _, name := range []string{"a", "b"} {
			live, err := w.resource("networks").Get(t.Context(), name, metav1.GetOptions{})
			require.NoError(t, err)
			assert.Empty(t, live.Object["status"], name)
			assert.Empty(t, live.GetFinalizers(), name)
		}
		w.patch("networks", "c", map[string]any{"spec": map[string]any{"podCIDR": "10.2.0.0/16"}})
		w.annotate("networks", "a", map[string]any{annotationOperation: "reconcile"})
		w.awaitSuccess("networks", "a", "Create")
		live, err := w.resource("networks").Get(t.Context(), "c", metav1.GetOptions{})
		require.NoError(t, err)
		seen, _, _ := unstructured.NestedInt64(live.Object, "status", "observedGeneration")
		assert.EqualValues(t, 1, seen, "a new generation asks nobody")
		w.annotate("networks", "c", map[string]any{annotationOperation: "reconcile"})
		w.await("networks", "c", "the new generation is observed", func(live *unstructured.Unstructured) bool {
			seen, _, _ := unstructured.NestedInt64(live.Object, "status", "observedGeneration")
			return seen == 2
		})
	})
	t.Run("it keeps its state", func(t *testing.T) {
		w := testCluster{t, w.client}
		w.patch("networks", "b", map[string]any{"status": map[string]any{"state": map[string]any{"carried": "over"}}}, "status")
		w.annotate("networks", "b", map[string]any{annotationOperation: "restore"})
		restored := w.awaitSuccess("networks", "b", "Restore")
		assert.Equal(t, "over", nestedString(restored, "status", "state", "carried"))
		w.annotate("networks", "b", map[string]any{annotationOperation: "migrate"})
		migrated := w.awaitSuccess("networks", "b", "Migrate")
		assert.Equal(t, "over", nestedString(migrated, "status", "state", "carried"))
	})
	t.Run("a Secret that does not exist", func(t *testing.T) {
		w := testCluster{t, w.client}
		w.create("infrastructures", "{apiVersion: extensions.gardener.cloud/v1alpha1, kind: Infrastructure, metadata: {name: i, annotations: {gardener.cloud/operation: reconcile}}, spec: {type: local, region: local, secretRef: {name: cloudprovider, namespace: default}}}")
		w.awaitError("infrastructures", "i", "secret default/cloudprovider not found")
		w.create("secrets", "{apiVersion: v1, kind: Secret, metadata: {name: cloudprovider}}")
		made := w.awaitSuccess("infrastructures", "i", "Create")
		assert.Equal(t, "10.250.0.0/16", nestedString(made, "status", "nodesCIDR"))
	})
	t.Run("it misbehaves as it is told", func(t *testing.T) {
		w := testCluster{t, w.client}
		w.annotate("infrastructures", "i", map[string]any{annotationFail: "quota is used up", annotationCodes: "ERR_INFRA_QUOTA_EXCEEDED", annotationOperation: "reconcile"})
		failed := w.awaitError("infrastructures", "i", "quota is used up")
		codes, _, _ := unstructured.NestedStringSlice(failed.Object, "status", "lastError", "codes")
		assert.Equal(t, []string{"ERR_INFRA_QUOTA_EXCEEDED"}, codes)
		w.annotate("infrastructures", "i", map[string]any{annotationFail: nil})
		w.awaitSuccess("infrastructures", "i", "Reconcile")

		w.patch("infrastructures", "i", map[string]any{"spec": map[string]any{"region": "other"}, "metadata": map[string]any{"annotations": map[string]any{annotationOlderGeneration: "true", annotationOperation: "reconcile"}}})
		older := w.awaitSuccess("infrastructures", "i", "Reconcile")
		w.await("infrastructures", "i", "it answers for the generation before", func(live *unstructured.Unstructured) bool {
			seen, _, _ := unstructured.NestedInt64(live.Object, "status", "observedGeneration")
			return seen == older.GetGeneration()-1 && live.GetGeneration() == older.GetGeneration()
		})

		begun := time.Now().Truncate(time.Second)
		w.annotate("infrastructures", "i", map[string]any{annotationOlderGeneration: nil, annotationSlow: "3s", annotationOperation: "reconcile"})
		w.await("infrastructures", "i", "it is at work", func(live *unstructured.Unstructured) bool {
			return nestedString(live, "status", "lastOperation", "state") == "Processing"
		})
		w.awaitSuccess("infrastructures", "i", "Reconcile")
		assert.GreaterOrEqual(t, time.Since(begun), 3*time.Second)
	})
	t.Run("deletion", func(t *testing.T) {
		w := testCluster{t, w.client}
		w.annotate("infrastructures", "i", map[string]any{annotationFail: "machines are left"})
		require.NoError(t, w.resource("infrastructures").Delete(t.Context(), "i", metav1.DeleteOptions{}))
		w.awaitError("infrastructures", "i", "machines are left")
		w.annotate("infrastructures", "i", map[string]any{annotationFail: nil})
		w.await("infrastructures", "i", "it is gone", func(live *unstructured.Unstructured) bool { return live == nil })
	})
}
