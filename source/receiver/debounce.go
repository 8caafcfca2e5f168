// SPDX-License-Identifier: Apache-2.0

package receiver

import (
	"context"
	"sync"

	"k8s.io/utils/clock"
)

// pushDebouncer merges many pushes into few syncs. It reports the first push at once, and the
// newest push of a quiet time at its end. It stores one push for each Landscape.
type pushDebouncer struct {
	clock       clock.WithDelayedExecution
	requestSync func(context.Context, Key, Push)
	mu          sync.Mutex
	bursts      map[Key]*pushBurst
}

type pushBurst struct {
	requested Push  // reported last
	pending   *Push // received after last
}

func newPushDebouncer(c clock.WithDelayedExecution, tell func(context.Context, Key, Push)) *pushDebouncer {
	return &pushDebouncer{clock: c, requestSync: tell, bursts: map[Key]*pushBurst{}}
}

// add returns at once, even while the Requester is busy.
func (c *pushDebouncer) add(key Key, push Push) {
	c.mu.Lock()
	defer c.mu.Unlock()
	b := c.bursts[key]
	if b == nil {
		c.bursts[key] = &pushBurst{requested: push}
		go c.request(key, push)
		return
	}
	newest := b.requested
	if b.pending != nil {
		newest = *b.pending
	}
	if push.Commit != "" && push.Ref == newest.Ref && push.Commit == newest.Commit {
		return // already reported or pending
	}
	b.pending = &push
}

func (c *pushDebouncer) request(key Key, push Push) {
	c.requestSync(context.Background(), key, push)
	c.clock.AfterFunc(debounceInterval, func() { go c.requestPending(key) })
}

func (c *pushDebouncer) requestPending(key Key) {
	c.mu.Lock()
	b := c.bursts[key]
	if b.pending == nil {
		delete(c.bursts, key)
		c.mu.Unlock()
		return
	}
	b.requested, b.pending = *b.pending, nil
	push := b.requested
	c.mu.Unlock()
	c.request(key, push)
}
