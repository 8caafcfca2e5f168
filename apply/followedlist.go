// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// FollowedList selects objects that the live cache does not hold. They are listed once and watched
// while someone reads them.
type FollowedList struct {
	Resource  schema.GroupVersionResource
	Namespace string
	// Selector is a label selector; it is empty for all objects.
	Selector string
	// Fields lists the fields to store in addition to metadata, separated by commas, such as
	// "spec,status.conditions"; it is empty for all. It limits the memory for many objects.
	Fields string
}

const (
	// idleTimeout is how long a list is watched after its last read; it exceeds the interval of
	// care.
	idleTimeout = 3 * time.Minute
	// unwatchedListMaxAge is the maximum age of a list that cannot be watched.
	unwatchedListMaxAge = 5 * time.Second
)

// Follow returns objects as of the last list and the watch since. It makes a request only on the
// first read, and on a read after three minutes without any. If only lists are allowed, it lists at
// most every five seconds, on reads. The objects lack managedFields and must not be modified. An
// error is that of the last list.
func (c *Cluster) Follow(ctx context.Context, f FollowedList) ([]*unstructured.Unstructured, error) {
	w, err := c.followedResource(f)
	if err == nil {
		err = w.waitCurrent(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("listing %s: %w", f.Resource.GroupResource(), err)
	}
	var out []*unstructured.Unstructured
	w.list(func(o *unstructured.Unstructured) { out = append(out, o) })
	return out, nil
}

// followedResource returns the list of f; the first call starts it.
func (c *Cluster) followedResource(f FollowedList) (*watchedResource, error) {
	selector, err := labels.Parse(f.Selector)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if w := c.followedLists[f]; w != nil {
		w.usedAt = c.clock.Now()
		return w, nil
	}
	w := &watchedResource{gvr: f.Resource, namespace: f.Namespace, cluster: c, isFollowed: true, relist: make(chan struct{}, 1), listDone: make(chan struct{}), usedAt: c.clock.Now()}
	w.store = &store{selector: selector, emit: func(ChangeEvent) {}, onList: func() { w.recordList(nil) }, shrink: fieldFilter(f.Fields), objects: map[nsName]*unstructured.Unstructured{}}
	c.followedLists[f] = w
	ctx, end := context.WithCancel(c.ctx)
	w.stop = end
	go w.run(ctx)
	go c.closeWhenIdle(ctx, f, w)
	return w, nil
}

// closeWhenIdle ends a list that no one read for a while.
func (c *Cluster) closeWhenIdle(ctx context.Context, f FollowedList, w *watchedResource) {
	rest := idleTimeout
	for {
		timer := c.clock.NewTimer(rest)
		select {
		case <-timer.C():
		case <-ctx.Done():
			timer.Stop()
			return
		}
		c.mu.Lock()
		rest = idleTimeout - c.clock.Since(w.usedAt)
		if rest <= 0 {
			delete(c.followedLists, f)
			w.stop()
		}
		c.mu.Unlock()
	}
}

// waitCurrent waits for the list, and requests a new one if the watch is refused.
func (w *watchedResource) waitCurrent(ctx context.Context) error {
	w.stateMu.Lock()
	old := w.synced && w.watchRefused && w.cluster.clock.Since(w.listedAt) > unwatchedListMaxAge
	if old {
		w.synced, w.readyErr = false, nil
		select {
		case w.relist <- struct{}{}:
		default:
		}
	}
	w.stateMu.Unlock()
	return w.waitReady(ctx)
}

// isUnwatchable reports whether a watch is forbidden or not supported.
func isUnwatchable(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsMethodNotSupported(err)
}

// isListRefused reports whether the server answered that there is no list, such as for a kind that
// no longer exists. After a connection error, Follow returns the last known objects, as the live
// cache does.
func isListRefused(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err)
}

// fieldFilter returns a function that reduces objects to metadata and some fields, without
// managedFields.
func fieldFilter(fields string) func(*unstructured.Unstructured) *unstructured.Unstructured {
	return func(o *unstructured.Unstructured) *unstructured.Unstructured {
		plain := withoutManagedFields(o)
		if fields == "" {
			return plain
		}
		out := &unstructured.Unstructured{Object: map[string]any{"apiVersion": plain.Object["apiVersion"], "kind": plain.Object["kind"], "metadata": plain.Object["metadata"]}}
		for field := range strings.SplitSeq(fields, ",") {
			path := strings.Split(field, ".")
			if v, found, err := unstructured.NestedFieldCopy(o.Object, path...); found && err == nil {
				// it fails only if a parent is not a map, which the copy has ruled out
				_ = unstructured.SetNestedField(out.Object, v, path...)
			}
		}
		return out
	}
}
