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

// Followed selects objects that the live cache does not hold. They are listed once and watched
// while somebody reads them.
type Followed struct {
	Resource  schema.GroupVersionResource
	Namespace string
	// Selector is a label selector; empty for all objects.
	Selector string
	// Keep lists the fields to store in addition to metadata, separated by commas, such as
	// "spec,status.conditions"; empty for all. It limits the memory for many objects.
	Keep string
}

const (
	// unread is how long a list is watched after its last read; it exceeds the interval of care.
	unread = 3 * time.Minute
	// lately is the maximum age of a list that cannot be watched.
	lately = 5 * time.Second
)

// Follow returns objects as of the last list and the watch since. It makes a request only on the
// first read, and on a read after three minutes without any. If only lists are allowed, it lists at
// most every five seconds, on reads. The objects lack managedFields and must not be modified. An
// error is that of the last list.
func (c *Cluster) Follow(ctx context.Context, f Followed) ([]*unstructured.Unstructured, error) {
	w, err := c.follow(f)
	if err == nil {
		err = w.current(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("listing %s: %w", f.Resource.GroupResource(), err)
	}
	var out []*unstructured.Unstructured
	w.list(func(o *unstructured.Unstructured) { out = append(out, o) })
	return out, nil
}

// follow returns the list of f; the first call starts it.
func (c *Cluster) follow(f Followed) (*watchedResource, error) {
	selector, err := labels.Parse(f.Selector)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if w := c.followed[f]; w != nil {
		w.used = c.clock.Now()
		return w, nil
	}
	w := &watchedResource{gvr: f.Resource, namespace: f.Namespace, cluster: c, followed: true, kick: make(chan struct{}, 1), ended: make(chan struct{}), used: c.clock.Now()}
	w.store = &store{selector: selector, emit: func(ChangeEvent) {}, onList: func() { w.listed(nil) }, shrink: keeping(f.Keep), objects: map[nsName]*unstructured.Unstructured{}}
	c.followed[f] = w
	ctx, end := context.WithCancel(c.ctx)
	w.end = end
	go w.run(ctx)
	go c.endUnread(ctx, f, w)
	return w, nil
}

// endUnread ends a list that nobody read for a while.
func (c *Cluster) endUnread(ctx context.Context, f Followed, w *watchedResource) {
	rest := unread
	for {
		timer := c.clock.NewTimer(rest)
		select {
		case <-timer.C():
		case <-ctx.Done():
			timer.Stop()
			return
		}
		c.mu.Lock()
		rest = unread - c.clock.Since(w.used)
		if rest <= 0 {
			delete(c.followed, f)
			w.end()
		}
		c.mu.Unlock()
	}
}

// current waits for the list, and requests a new one if the watch is refused.
func (w *watchedResource) current(ctx context.Context) error {
	w.state.Lock()
	old := w.synced && w.refused && w.cluster.clock.Since(w.listedAt) > lately
	if old {
		w.synced, w.err = false, nil
		select {
		case w.kick <- struct{}{}:
		default:
		}
	}
	w.state.Unlock()
	return w.ready(ctx)
}

// isUnwatchable reports whether a watch is forbidden or not supported.
func isUnwatchable(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsMethodNotSupported(err)
}

// isAnswered reports whether the server answered that there is no list, such as for a kind that no
// longer exists. After a connection error, Follow returns the last known objects, as the live cache
// does.
func isAnswered(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err)
}

// keeping returns a function that reduces objects to metadata and some fields, without
// managedFields.
func keeping(fields string) func(*unstructured.Unstructured) *unstructured.Unstructured {
	return func(o *unstructured.Unstructured) *unstructured.Unstructured {
		plain := unmanaged(o)
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
