// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
)

// follower has the objects of a kind and watches their changes.
type follower struct {
	watch watch.Interface

	mu      sync.Mutex
	objects map[string]*unstructured.Unstructured
	seen    map[string]time.Time
	changed chan struct{} // closed and replaced at each change
	err     error
}

// follow lists and watches a kind in the namespace of the bundles until the context ends.
func (s *server) follow(ctx context.Context, kind string) (*follower, error) {
	list, err := s.resource(kind, bundleNamespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	f := &follower{objects: map[string]*unstructured.Unstructured{}, seen: map[string]time.Time{}, changed: make(chan struct{})}
	for _, o := range list.Items {
		f.objects[o.GetName()] = &o
	}
	if f.watch, err = s.resource(kind, bundleNamespace).Watch(ctx, metav1.ListOptions{ResourceVersion: list.GetResourceVersion()}); err != nil {
		return nil, err
	}
	go func() {
		for event := range f.watch.ResultChan() {
			f.record(event)
		}
		f.fail(fmt.Errorf("the watch of %s has ended", kind))
	}()
	return f, nil
}

func (f *follower) stop() { f.watch.Stop() }

func (f *follower) record(event watch.Event) {
	o, ok := event.Object.(*unstructured.Unstructured)
	if !ok || event.Type == watch.Error {
		f.fail(errors.New("a watch has failed"))
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if event.Type == watch.Deleted {
		delete(f.objects, o.GetName())
	} else {
		f.objects[o.GetName()] = o
	}
	f.seen[o.GetName()] = time.Now()
	f.wake()
}

func (f *follower) fail(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.err = err
	f.wake()
}

func (f *follower) wake() {
	close(f.changed)
	f.changed = make(chan struct{})
}

// snapshot returns the current objects.
func (f *follower) snapshot() map[string]*unstructured.Unstructured {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.objects)
}

// waitUntil waits until holds was true for each named object, and returns the time for each. It
// does not check an object again.
func (f *follower) waitUntil(ctx context.Context, names []string, holds func(*unstructured.Unstructured) bool) (map[string]time.Time, error) {
	left, done := map[string]bool{}, map[string]time.Time{}
	for _, name := range names {
		left[name] = true
	}
	looked := map[string]string{}
	for {
		f.mu.Lock()
		changed, err := f.changed, f.err
		for name := range left {
			o := f.objects[name]
			if o == nil || looked[name] == o.GetResourceVersion() {
				continue
			}
			looked[name] = o.GetResourceVersion()
			if holds(o) {
				done[name] = f.seen[name]
				delete(left, name)
			}
		}
		f.mu.Unlock()
		if len(left) == 0 {
			return done, nil
		}
		if err != nil {
			return nil, err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, fmt.Errorf("%d of %d are not done, such as %s: %w", len(left), len(names), anyName(left), context.Cause(ctx))
		}
	}
}

func anyName(names map[string]bool) string {
	for name := range names {
		return name
	}
	return ""
}

func latest(times map[string]time.Time) time.Time {
	var out time.Time
	for _, t := range times {
		if t.After(out) {
			out = t
		}
	}
	return out
}
