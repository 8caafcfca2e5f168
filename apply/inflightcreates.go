// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// inFlightNote is why an object that no longer exists stays in the inventory for a while.
const inFlightNote = "no longer exists; it stays in the inventory until no request of the previous instance can create it again"

// inFlightCreates holds the objects that a previous engine may still create: their inventory
// announced them, and does not say that they were applied. They may appear until the requests of
// that engine have ended, even after we have deleted them.
type inFlightCreates struct {
	mu      sync.Mutex
	clock   clock.PassiveClock
	until   time.Time
	sets    map[*Cluster]map[string]bool // sets whose inventories were read
	objects map[*Cluster]map[objectKey]bool
}

func (l *inFlightCreates) begin(c clock.PassiveClock, d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.clock, l.until = c, c.Now().Add(d)
	l.sets, l.objects = map[*Cluster]map[string]bool{}, map[*Cluster]map[objectKey]bool{}
}

// clearIfExpired reports whether requests can no longer arrive, and then clears the limbo. The
// caller holds the lock.
func (l *inFlightCreates) clearIfExpired() bool {
	if l.clock == nil || l.clock.Now().Before(l.until) {
		return l.clock == nil
	}
	l.clock, l.sets, l.objects = nil, nil, nil
	return true
}

// addAnnounced adds the announced entries of an inventory that is read for the first time.
func (l *inFlightCreates) addAnnounced(c *Cluster, set string, entries []Entry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.clearIfExpired() || l.sets[c][set] {
		return
	}
	if l.sets[c] == nil {
		l.sets[c], l.objects[c] = map[string]bool{}, map[objectKey]bool{}
	}
	l.sets[c][set] = true
	for _, e := range entries {
		if e.AppliedDigest == "" && !e.Deleting {
			l.objects[c][e.key()] = true
		}
	}
}

func (l *inFlightCreates) has(c *Cluster, k objectKey) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.clearIfExpired() && l.objects[c][k]
}
