// SPDX-License-Identifier: Apache-2.0

package permit

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pergola-dev/pergola/apply"
)

// ConfigMapStore stores values by key as JSON in a ConfigMap, which one process writes. It is safe
// for concurrent use.
type ConfigMapStore[T any] struct {
	cluster *apply.Cluster
	ref     apply.Ref
	manager string

	// writeLock is held while the ConfigMap and memory change together, mu only briefly.
	writeLock, mu sync.Mutex
	// values is nil before the ConfigMap was read.
	values map[string]T
}

// NewConfigMapStore returns notes in a ConfigMap, which is created with the first value. manager is
// the field manager of writes.
func NewConfigMapStore[T any](cluster *apply.Cluster, configMap apply.Ref, manager string) *ConfigMapStore[T] {
	return &ConfigMapStore[T]{cluster: cluster, ref: configMap, manager: manager}
}

// Read loads the values of an earlier process, once. An invalid value becomes the zero value,
// because its key matters.
func (n *ConfigMapStore[T]) Read(ctx context.Context) error {
	if n.IsRead() {
		return nil
	}
	n.writeLock.Lock()
	defer n.writeLock.Unlock()
	if n.IsRead() {
		return nil
	}
	live, err := n.cluster.GetLive(ctx, n.ref)
	if err != nil && !apierrors.IsNotFound(err) {
		return n.cluster.Explain(n.ref, "read", err)
	}
	known := map[string]T{}
	if err == nil {
		data, _, _ := unstructured.NestedStringMap(live.Object, "data")
		for key, text := range data {
			var value T
			_ = json.Unmarshal([]byte(text), &value)
			known[key] = value
		}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.values = known
	return nil
}

// IsRead reports whether the ConfigMap was read.
func (n *ConfigMapStore[T]) IsRead() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.values != nil
}

// Values returns a copy of the values; none before Read.
func (n *ConfigMapStore[T]) Values() map[string]T {
	n.mu.Lock()
	defer n.mu.Unlock()
	return maps.Clone(n.values)
}

// Get returns a value, and reports whether it exists.
func (n *ConfigMapStore[T]) Get(key string) (T, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	value, known := n.values[key]
	return value, known
}

// Change lets a function change the value of a key, and writes the result if it differs. No other
// write happens meanwhile. It writes nothing before Read. With allowsLess, values has the new value
// before the write, even if the write fails.
func (n *ConfigMapStore[T]) Change(ctx context.Context, key string, change func(now T, known bool) (next T, allowsLess bool)) error {
	n.writeLock.Lock()
	defer n.writeLock.Unlock()
	if !n.IsRead() {
		return nil
	}
	now, known := n.Get(key)
	next, allowsLess := change(now, known)
	if reflect.DeepEqual(now, next) {
		return nil
	}
	if allowsLess {
		n.set(key, next)
	}
	return n.write(ctx, key, next)
}

// Delete deletes keys. It does nothing during another write: the next call is soon enough.
func (n *ConfigMapStore[T]) Delete(ctx context.Context, is func(key string) bool) error {
	if !n.writeLock.TryLock() {
		return nil
	}
	defer n.writeLock.Unlock()
	gone := map[string]any{}
	for key := range n.Values() {
		if is(key) {
			gone[key] = nil
		}
	}
	if len(gone) == 0 {
		return nil
	}
	if _, err := n.cluster.MergePatch(ctx, n.ref, map[string]any{"data": gone}, n.manager, ""); err != nil && !apierrors.IsNotFound(err) {
		return n.cluster.Explain(n.ref, "record in", err)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	for key := range gone {
		delete(n.values, key)
	}
	return nil
}

func (n *ConfigMapStore[T]) set(key string, value T) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.values[key] = value
}

// write writes a value, then sets it in memory; the caller holds n.writing.
func (n *ConfigMapStore[T]) write(ctx context.Context, key string, value T) error {
	text, err := json.Marshal(value)
	if err == nil {
		err = n.patch(ctx, map[string]any{key: string(text)})
	}
	if err != nil {
		return n.cluster.Explain(n.ref, "record in", err)
	}
	n.set(key, value)
	return nil
}

// patch changes data of the ConfigMap, which it creates if necessary.
func (n *ConfigMapStore[T]) patch(ctx context.Context, data map[string]any) error {
	_, err := n.cluster.MergePatch(ctx, n.ref, map[string]any{"data": data}, n.manager, "")
	if !apierrors.IsNotFound(err) {
		return err
	}
	o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": n.ref.APIVersion, "kind": n.ref.Kind, "data": data}}
	o.SetNamespace(n.ref.Namespace)
	o.SetName(n.ref.Name)
	configMaps := n.cluster.Dynamic().Resource(corev1.SchemeGroupVersion.WithResource("configmaps")).Namespace(n.ref.Namespace)
	if _, err := configMaps.Create(ctx, o, metav1.CreateOptions{FieldManager: n.manager}); err != nil {
		return fmt.Errorf("create: %w", err)
	}
	return nil
}
