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

// Followed says which objects are listed once and watched from then on, for as long as somebody
// reads them: objects of others, which the live cache does not hold.
type Followed struct {
	Resource  schema.GroupVersionResource
	Namespace string
	// Selector is one of labels; empty for all objects.
	Selector string
	// Keep are the fields that are kept besides metadata, with dots in between and commas after
	// each, such as "spec,status.conditions"; empty for all. There may be many objects of others.
	Keep string
}

const (
	// unread is how long a list is followed after somebody has read it: longer than it takes from
	// one look of care to the next.
	unread = 3 * time.Minute
	// lately is how old a list may be that nobody is allowed to watch.
	lately = 5 * time.Second
)

// Follow gives objects as the last list and the watch since then have them. Only the first reading
// makes a request, and one after three minutes without any. They come without managedFields, and
// nobody may change them. Where a list is allowed and a watch is not, there is a list every five
// seconds at most, while they are read. An error is that of the last list.
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

// follow gives the list, which begins with its first reading.
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

// endUnread ends a list that nobody has read for a while.
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

// current waits until the list is in, and asks for a new one where nobody may watch.
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

// isUnwatchable tells whether an error of a watch is that it is not allowed, or not served.
func isUnwatchable(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsMethodNotSupported(err)
}

// isAnswered tells whether an error of a list says that there is nothing to be had, such as of a
// kind that is gone. One of the connection does not: what was known goes on to be given then, as
// the live cache does.
func isAnswered(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err)
}

// keeping makes objects small: without managedFields, and with nothing but some fields and their
// metadata.
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
				// it fails only where a parent is no map, which the copy has ruled out
				_ = unstructured.SetNestedField(out.Object, v, path...)
			}
		}
		return out
	}
}
