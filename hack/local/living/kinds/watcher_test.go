// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"

	"github.com/pergola-dev/pergola/hack/local/living/livingtest"
)

var (
	definitionsResource = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	testResource        = schema.GroupVersionResource{Group: "example.org", Version: "v1", Resource: "things"}
)

func testDefinition() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": map[string]any{"name": "things.example.org"},
		"spec": map[string]any{
			"group": "example.org", "scope": "Namespaced",
			"names": map[string]any{"kind": "Thing", "plural": "things", "singular": "thing", "listKind": "ThingList"},
			"versions": []any{map[string]any{
				"name": "v1", "served": true, "storage": true,
				"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
			}},
		},
	}}
}

// TestWatcherOfTemporaryKind creates and deletes a kind on a real API server, twice.
func TestWatcherOfTemporaryKind(t *testing.T) {
	client, err := dynamic.NewForConfig(livingtest.Start(t))
	require.NoError(t, err)
	told := make(chan string, 100)
	kind := New(client, testResource, clock.RealClock{}, slog.New(slog.DiscardHandler), func(o *unstructured.Unstructured) { told <- o.GetName() })
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { kind.Run(ctx); close(ended) }()

	require.NoError(t, kind.Await(ctx), "a kind that is not there is known to have no objects")
	assert.Empty(t, kind.List())
	assert.Nil(t, kind.Get("default/one"))
	for range 2 {
		_, err := client.Resource(definitionsResource).Create(ctx, testDefinition(), metav1.CreateOptions{})
		require.NoError(t, err)
		thing := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.org/v1", "kind": "Thing", "metadata": map[string]any{"name": "one"}}}
		require.Eventually(t, func() bool {
			_, err := client.Resource(testResource).Namespace("default").Create(ctx, thing, metav1.CreateOptions{})
			return err == nil
		}, 30*time.Second, 20*time.Millisecond)
		assert.Equal(t, "one", receive(t, told))
		require.Eventually(t, func() bool { return kind.Get("default/one") != nil && len(kind.List()) == 1 }, 30*time.Second, time.Millisecond)

		require.NoError(t, client.Resource(definitionsResource).Delete(ctx, "things.example.org", metav1.DeleteOptions{}))
		assert.Equal(t, "one", receive(t, told), "with its kind an object is gone")
		require.Eventually(t, func() bool { return len(kind.List()) == 0 }, 30*time.Second, time.Millisecond)
		require.Eventually(t, func() bool {
			_, err := client.Resource(definitionsResource).Get(ctx, "things.example.org", metav1.GetOptions{})
			return err != nil
		}, 30*time.Second, 20*time.Millisecond)
		require.Eventually(t, func() bool {
			kind.mu.Lock()
			defer kind.mu.Unlock()
			return kind.indexer == nil
		}, 60*time.Second, 10*time.Millisecond, "a kind that is gone is not watched")
		for len(told) > 0 {
			<-told
		}
	}
	cancel()
	receive(t, ended)
}

func receive[T any](t *testing.T, from <-chan T) (value T) {
	t.Helper()
	select {
	case value = <-from:
	case <-time.After(30 * time.Second):
		require.Fail(t, "nothing came")
	}
	return value
}
