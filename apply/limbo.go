package apply

import (
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// inLimbo is why an object that is gone stays in the inventory for a while.
const inLimbo = "is gone, and stays in the inventory until no request of the instance before this one can bring it back"

// limbo holds the objects of which it is not known whether somebody still makes them: their
// inventory announced them, and does not say that they were applied. They may appear until the
// requests of the engine that announced them have ended, even after we have deleted them.
type limbo struct {
	mu      sync.Mutex
	clock   clock.PassiveClock
	until   time.Time
	sets    map[*Cluster]map[string]bool // those whose inventories were read
	objects map[*Cluster]map[key]bool
}

func (l *limbo) begin(c clock.PassiveClock, d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.clock, l.until = c, c.Now().Add(d)
	l.sets, l.objects = map[*Cluster]map[string]bool{}, map[*Cluster]map[key]bool{}
}

// over tells whether nothing can come any more, and then forgets all. The lock is held.
func (l *limbo) over() bool {
	if l.clock == nil || l.clock.Now().Before(l.until) {
		return l.clock == nil
	}
	l.clock, l.sets, l.objects = nil, nil, nil
	return true
}

// read takes what an inventory says when it is read for the first time.
func (l *limbo) read(c *Cluster, set string, entries []Entry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over() || l.sets[c][set] {
		return
	}
	if l.sets[c] == nil {
		l.sets[c], l.objects[c] = map[string]bool{}, map[key]bool{}
	}
	l.sets[c][set] = true
	for _, e := range entries {
		if e.Applied == "" && !e.Leaving {
			l.objects[c][e.key()] = true
		}
	}
}

func (l *limbo) has(c *Cluster, k key) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.over() && l.objects[c][k]
}
