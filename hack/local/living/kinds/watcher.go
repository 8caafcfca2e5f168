// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
)

// pollInterval is the interval of checks whether the kind exists.
const pollInterval = time.Second

// Watcher watches the objects of one kind in all namespaces.
type Watcher struct {
	client   dynamic.Interface
	resource schema.GroupVersionResource
	clock    clock.WithTicker
	log      *slog.Logger
	onChange func(object *unstructured.Unstructured)

	mu      sync.Mutex
	indexer cache.Indexer // nil while the kind does not exist
	// known is closed once the kind is known not to exist, or all its objects are known.
	known chan struct{}
	once  sync.Once
}

// New returns a Kind; Run starts the watch. It calls changed for every created, changed or deleted
// object. If the kind is deleted, so are its objects.
func New(client dynamic.Interface, resource schema.GroupVersionResource, clock clock.WithTicker, log *slog.Logger, changed func(*unstructured.Unstructured)) *Watcher {
	return &Watcher{
		client: client, resource: resource, clock: clock, onChange: changed, known: make(chan struct{}),
		log: log.With("resource", resource.GroupResource().String()),
	}
}

// Run watches until the context ends.
func (k *Watcher) Run(ctx context.Context) {
	for ctx.Err() == nil {
		there, err := k.isServed(ctx)
		switch {
		case there:
			k.watch(ctx)
			continue
		case err == nil:
			k.markKnown()
		case ctx.Err() == nil:
			k.log.Warn("Cannot tell whether the kind is served", "error", err)
		}
		select {
		case <-ctx.Done():
		case <-k.clock.After(pollInterval):
		}
	}
}

// Await waits until all objects are known, or that the kind does not exist.
func (k *Watcher) Await(ctx context.Context) error {
	select {
	case <-k.known:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("listing %s: %w", k.resource.GroupResource(), ctx.Err())
	}
}

// List returns all objects. They are shared and must not be changed.
func (k *Watcher) List() []*unstructured.Unstructured {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.indexer == nil {
		return nil
	}
	var all []*unstructured.Unstructured
	for _, object := range k.indexer.List() {
		if object, ok := object.(*unstructured.Unstructured); ok {
			all = append(all, object)
		}
	}
	return all
}

// Get returns the object with the key "namespace/name", or nil.
func (k *Watcher) Get(key string) *unstructured.Unstructured {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.indexer == nil {
		return nil
	}
	object, _, _ := k.indexer.GetByKey(key)
	found, _ := object.(*unstructured.Unstructured)
	return found
}

func (k *Watcher) isServed(ctx context.Context) (bool, error) {
	_, err := k.client.Resource(k.resource).List(ctx, metav1.ListOptions{Limit: 1})
	if errors.IsNotFound(err) {
		return false, nil
	}
	return err == nil, err
}

func (k *Watcher) markKnown() { k.once.Do(func() { close(k.known) }) }

// watch watches the objects while the kind exists.
func (k *Watcher) watch(ctx context.Context) {
	ctx, gone := context.WithCancel(ctx)
	defer gone()
	informer := dynamicinformer.NewFilteredDynamicInformer(k.client, k.resource, metav1.NamespaceAll, 0, cache.Indexers{}, nil).Informer()
	// Both calls fail only after the start.
	_ = informer.SetWatchErrorHandlerWithContext(func(ctx context.Context, reflector *cache.Reflector, err error) {
		if errors.IsNotFound(err) {
			gone()
			return
		}
		cache.DefaultWatchErrorHandler(ctx, reflector, err)
	})
	registration, _ := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    k.notify,
		UpdateFunc: func(_, now any) { k.notify(now) },
		DeleteFunc: k.notify,
	})
	k.setIndexer(informer.GetIndexer())
	ended := make(chan struct{})
	go func() {
		informer.RunWithContext(ctx)
		close(ended)
	}()
	if cache.WaitForCacheSync(ctx.Done(), registration.HasSynced) {
		k.markKnown()
	}
	<-ended
	last := k.List()
	k.setIndexer(nil)
	for _, object := range last {
		k.notify(object)
	}
}

func (k *Watcher) setIndexer(indexer cache.Indexer) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.indexer = indexer
}

func (k *Watcher) notify(object any) {
	if last, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = last.Obj
	}
	if object, ok := object.(*unstructured.Unstructured); ok && k.onChange != nil {
		k.onChange(object)
	}
}
