package receiver

import (
	"context"
	"sync"

	"k8s.io/utils/clock"
)

// collapse merges many pushes into few syncs. It reports the first push at once, and the newest
// push of a quiet time at its end. It stores one push for each Landscape.
type collapse struct {
	clock clock.WithDelayedExecution
	tell  func(context.Context, Key, Push)
	mu    sync.Mutex
	by    map[Key]*burst
}

type burst struct {
	last    Push  // reported last
	pending *Push // received after last
}

func newCollapse(c clock.WithDelayedExecution, tell func(context.Context, Key, Push)) *collapse {
	return &collapse{clock: c, tell: tell, by: map[Key]*burst{}}
}

// ask returns at once, even while the Requester is busy.
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
		return // already reported or pending
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
