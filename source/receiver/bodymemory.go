// SPDX-License-Identifier: Apache-2.0

package receiver

import "sync"

// Memory of bodies.
const (
	maxBodies  = 64 << 20 // bytes, of all bodies together
	firstChunk = 4 << 10  // bytes, of a body before its first byte
	// provenReserve is not available to unproven senders, in bytes.
	provenReserve = 16 << 20
	// unprovenShare and provenShare are the part (1/n) of the free memory that one sender may
	// hold, without and with a proof.
	unprovenShare, provenShare = 16, 2
)

// bodyMemory is the memory for bodies. It is allocated as bytes arrive, so that a sender who
// announces a body without sending it holds nearly nothing. One sender's share shrinks with the
// free memory, which leaves some for later senders. Unproven senders cannot exhaust the memory of
// proven ones.
type bodyMemory struct {
	mu        sync.Mutex
	free      int
	allocated map[sender]int
}

func newBodyMemory() *bodyMemory { return &bodyMemory{free: maxBodies, allocated: map[sender]int{}} }

// share is the memory that a sender may hold now, in bytes.
func (m *bodyMemory) share(s sender) int {
	if s.isProven() {
		return m.free / provenShare
	}
	return max(0, m.free-provenReserve) / unprovenShare
}

// allocate reports whether a sender gets more memory. It never waits: waiting senders that hold
// memory would block each other until they time out.
func (m *bodyMemory) allocate(s sender, bytes int) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.allocated[s]+bytes > m.share(s) {
		return false
	}
	m.free -= bytes
	m.allocated[s] += bytes
	return true
}

func (m *bodyMemory) release(s sender, bytes int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.free += bytes
	if m.allocated[s] -= bytes; m.allocated[s] == 0 {
		delete(m.allocated, s)
	}
}

// isNearLimit reports whether a sender holds more than half of its share.
func (m *bodyMemory) isNearLimit(s sender) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return 2*m.allocated[s] > m.share(s)
}
