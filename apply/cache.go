// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// watchedResource is the live cache of one resource: a store, kept current by list and watch.
type watchedResource struct {
	*store
	gvr     schema.GroupVersionResource
	cluster *Cluster
	relist  chan struct{}
	stop    context.CancelFunc
	usedAt  time.Time // last use; guarded by Cluster.mu
	// namespace restricts the cache; empty means all. followed marks a list of Cluster.Follow.
	namespace  string
	isFollowed bool

	stateMu      sync.Mutex
	synced       bool
	listedAt     time.Time     // end of the last successful list
	watchRefused bool          // the last watch was forbidden or not supported
	listErr      error         // error of the last list request
	listDone     chan struct{} // closed and replaced after every list, successful or not
	readyErr     error         // error for ready
}

// openResource returns the live cache of a kind; the first call starts it.
func (c *Cluster) openResource(ctx context.Context, gvk schema.GroupVersionKind) (*watchedResource, error) {
	mapping, err := c.Mapping(ctx, gvk)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if w := c.stores[mapping.Resource]; w != nil {
		w.usedAt = c.clock.Now()
		return w, nil
	}
	selector := c.selector
	if c.wholeKinds[gvk.GroupKind()] {
		selector = labels.Everything()
	}
	w := &watchedResource{gvr: mapping.Resource, cluster: c, namespace: c.namespace, relist: make(chan struct{}, 1), listDone: make(chan struct{}), usedAt: c.clock.Now()}
	w.store = &store{selector: selector, emit: c.dispatch, onList: func() { w.recordList(nil) },
		objects: map[nsName]*unstructured.Unstructured{}}
	c.stores[mapping.Resource] = w
	ctx, end := context.WithCancel(c.ctx)
	w.stop = end
	go w.run(ctx)
	return w, nil
}

// DropIdle ends the live caches that were not read for the given time, and returns their resources.
// Caches without a label selector (ClusterOptions.Whole) stay.
func (c *Cluster) DropIdle(after time.Duration) []schema.GroupVersionResource {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []schema.GroupVersionResource
	for gvr, w := range c.stores {
		if c.clock.Since(w.usedAt) < after || w.selector.Empty() {
			continue
		}
		w.stop()
		delete(c.stores, gvr)
		out = append(out, gvr)
	}
	return out
}

// waitReady waits for the first list. If listing fails, it returns the error at once while the
// cache retries in the background; each later call triggers another attempt.
func (w *watchedResource) waitReady(ctx context.Context) error {
	w.stateMu.Lock()
	synced, ended, err := w.synced, w.listDone, w.readyErr
	w.stateMu.Unlock()
	if synced {
		return nil
	}
	if err != nil {
		select {
		case w.relist <- struct{}{}:
		default:
		}
	}
	select {
	case <-ended:
	case <-ctx.Done():
		return ctx.Err()
	case <-w.cluster.ctx.Done():
		return errClosed
	}
	w.stateMu.Lock()
	defer w.stateMu.Unlock()
	if w.synced {
		return nil
	}
	return w.readyErr
}

var errClosed = errors.New("the cluster was closed")

func (w *watchedResource) recordList(err error) {
	w.stateMu.Lock()
	defer w.stateMu.Unlock()
	w.readyErr = err
	if w.synced = err == nil; w.synced {
		w.listedAt = w.cluster.clock.Now()
	}
	close(w.listDone)
	w.listDone = make(chan struct{})
}

// run lists and watches until ctx ends, and backs off after failures.
func (w *watchedResource) run(ctx context.Context) {
	lw := &cache.ListWatch{ListWithContextFunc: w.listPage, WatchFuncWithContext: w.watch}
	quiet := logr.Discard()
	reflector := cache.NewReflectorWithOptions(listOnly{lw}, &unstructured.Unstructured{}, w.store,
		cache.ReflectorOptions{Name: w.gvr.String(), Logger: &quiet})
	pause := 500 * time.Millisecond
	for ctx.Err() == nil {
		started := w.cluster.clock.Now()
		err := reflector.ListAndWatchWithContext(logr.NewContext(ctx, quiet))
		if ctx.Err() != nil {
			return
		}
		w.stateMu.Lock()
		waiting := !w.synced
		if w.isFollowed { // a caller may have requested a new list while the watch was refused
			waiting = w.listErr != nil && (!w.synced || isListRefused(w.listErr))
		}
		refused := w.isFollowed && w.watchRefused
		w.stateMu.Unlock()
		if waiting && err != nil {
			w.recordList(err)
		}
		if refused {
			pause = idleTimeout // the next reader requests a list
		}
		if w.cluster.clock.Since(started) > time.Minute {
			pause = 500 * time.Millisecond
		}
		timer := w.cluster.clock.NewTimer(pause)
		select {
		case <-timer.C():
		case <-w.relist:
		case <-ctx.Done():
		}
		timer.Stop()
		pause = min(2*pause, 30*time.Second)
	}
}

// listPage lists one page of objects. For resource version 0 the server would send thousands of
// objects at once, with all their managedFields. Without a version it sends the newest state in
// pages, and each page is shrunk before the next one. A list of Cluster.Follow drops the version,
// too: "not older than the last list", the reflector's request, may return the same state again.
func (w *watchedResource) listPage(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
	o.LabelSelector = w.selector.String()
	if w.isFollowed || o.ResourceVersion == "0" && o.Limit > 0 {
		o.ResourceVersion = ""
	}
	list, err := w.cluster.dynamic.Resource(w.gvr).Namespace(w.namespace).List(ctx, o)
	w.stateMu.Lock()
	w.listErr = err
	w.stateMu.Unlock()
	if err != nil {
		return nil, err
	}
	for i := range list.Items {
		list.Items[i] = *w.store.trimObject(&list.Items[i])
	}
	return list, nil
}

func (w *watchedResource) watch(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	o.LabelSelector = w.selector.String()
	events, err := w.cluster.dynamic.Resource(w.gvr).Namespace(w.namespace).Watch(ctx, o)
	w.stateMu.Lock()
	w.watchRefused = isUnwatchable(err)
	w.stateMu.Unlock()
	return events, err
}

// listOnly makes the reflector list instead of streaming the first list through a watch. A list
// answers sooner, and an apply begins by waiting for it.
type listOnly struct{ *cache.ListWatch }

func (listOnly) IsWatchListSemanticsUnSupported() bool { return true }

// Get returns an object from the live cache, without managedFields. The cache holds the objects
// with the managed-by label. Only the first Get of a kind makes a request: the list. If the object
// does not exist, Get returns a ReasonNotFound error.
func (c *Cluster) Get(ctx context.Context, ref Ref) (*unstructured.Unstructured, error) {
	w, err := c.readyResource(ctx, ref.GVK())
	if err != nil {
		return nil, err
	}
	if o := w.get(nsName{ref.Namespace, ref.Name}); o != nil {
		return withoutManagedFields(o).DeepCopy(), nil
	}
	return nil, apierrors.NewNotFound(w.gvr.GroupResource(), ref.Name)
}

// Cached returns an object from the live cache without starting it, or nil. The object is not a
// copy, and only this package can read its managedFields.
func (c *Cluster) Cached(ref Ref) *unstructured.Unstructured {
	c.kinds.mu.Lock()
	mapper := c.kinds.mapper
	c.kinds.mu.Unlock()
	if mapper == nil {
		return nil
	}
	mapping, err := mapper.RESTMapping(ref.GroupKind(), ref.GVK().Version)
	if err != nil {
		return nil
	}
	c.mu.Lock()
	w := c.stores[mapping.Resource]
	c.mu.Unlock()
	if w == nil {
		return nil
	}
	return w.get(nsName{ref.Namespace, ref.Name})
}

// GetLive reads an object from the server.
func (c *Cluster) GetLive(ctx context.Context, ref Ref) (*unstructured.Unstructured, error) {
	mapping, err := c.Mapping(ctx, ref.GVK())
	if err != nil {
		return nil, err
	}
	return c.dynamic.Resource(mapping.Resource).Namespace(ref.Namespace).Get(ctx, ref.Name, metav1.GetOptions{})
}

// List returns the objects of a kind from the live cache, without managedFields; an empty namespace
// means all, a nil selector any. The order is not defined.
func (c *Cluster) List(ctx context.Context, gvk schema.GroupVersionKind, namespace string, sel labels.Selector) ([]*unstructured.Unstructured, error) {
	w, err := c.readyResource(ctx, gvk)
	if err != nil {
		return nil, err
	}
	var out []*unstructured.Unstructured
	w.list(func(o *unstructured.Unstructured) {
		if (namespace == "" || o.GetNamespace() == namespace) && (sel == nil || sel.Matches(labels.Set(o.GetLabels()))) {
			out = append(out, withoutManagedFields(o).DeepCopy())
		}
	})
	return out, nil
}

func (c *Cluster) readyResource(ctx context.Context, gvk schema.GroupVersionKind) (*watchedResource, error) {
	w, err := c.openResource(ctx, gvk)
	if err != nil {
		return nil, err
	}
	if err := w.waitReady(ctx); err != nil {
		return nil, fmt.Errorf("listing %s: %w", w.gvr.GroupResource(), err)
	}
	return w, nil
}

// Subscribe returns a channel that receives a value after changes of cached objects of a kind.
// Several changes may share one value. The subscription ends with ctx.
func (c *Cluster) Subscribe(ctx context.Context, gvk schema.GroupVersionKind) (<-chan struct{}, error) {
	if _, err := c.readyResource(ctx, gvk); err != nil {
		return nil, err
	}
	wake := make(chan struct{}, 1)
	stop := c.OnChange(func(e ChangeEvent) {
		if e.Ref.GroupKind() == gvk.GroupKind() {
			select {
			case wake <- struct{}{}:
			default:
			}
		}
	})
	context.AfterFunc(ctx, stop)
	return wake, nil
}

// OnChange calls f for every change of every cached object, one call at a time for each kind. f
// must be quick and must not write to the cluster.
func (c *Cluster) OnChange(f func(ChangeEvent)) (stop func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.nextID++
	id := c.nextID
	c.changeHandlers[id] = f
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.changeHandlers, id)
	}
}

func (c *Cluster) dispatch(e ChangeEvent) {
	c.mu.Lock()
	handlers := make([]func(ChangeEvent), 0, len(c.changeHandlers))
	for _, f := range c.changeHandlers {
		handlers = append(handlers, f)
	}
	c.mu.Unlock()
	for _, f := range handlers {
		f(e)
	}
}
