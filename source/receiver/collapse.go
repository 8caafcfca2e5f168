package receiver

import (
	"context"
	"sync"

	"k8s.io/utils/clock"
)

// collapse makes one sync of many pushes: the first one is told at once, the newest of those that
// follow within a quiet time at its end. What it remembers is one push a Landscape.
type collapse struct {
	clock clock.WithDelayedExecution
	tell  func(context.Context, Key, Push)
	mu    sync.Mutex
	by    map[Key]*burst
}

type burst struct {
	last    Push  // told last
	pending *Push // came after it
}

func newCollapse(c clock.WithDelayedExecution, tell func(context.Context, Key, Push)) *collapse {
	return &collapse{clock: c, tell: tell, by: map[Key]*burst{}}
}

// ask returns at once, also while the Requester is busy.
func (c *collapse) ask(key Key, push Push) {
	c.mu.Lock()
	defer c.mu.Unlock()
	b := c.by[key]
	if b == nil {
		c.by[key] = &burst{last: push}
		go c.run(key, push)
		return
	}
	newest := b.last
	if b.pending != nil {
		newest = *b.pending
	}
	if push.Commit != "" && push.Ref == newest.Ref && push.Commit == newest.Commit {
		return // told, or about to be
	}
	b.pending = &push
}

func (c *collapse) run(key Key, push Push) {
	c.tell(context.Background(), key, push)
	c.clock.AfterFunc(quiet, func() { go c.next(key) })
}

func (c *collapse) next(key Key) {
	c.mu.Lock()
	b := c.by[key]
	if b.pending == nil {
		delete(c.by, key)
		c.mu.Unlock()
		return
	}
	b.last, b.pending = *b.pending, nil
	push := b.last
	c.mu.Unlock()
	c.run(key, push)
}
