package receiver

import "sync"

// Memory of bodies.
const (
	maxBodies  = 64 << 20 // bytes, of all bodies together
	firstPiece = 4 << 10  // bytes, of a body before its first byte
	// reserve is not available to unproven senders, in bytes.
	reserve = 16 << 20
	// strangersShare and provenShare are the part (1/n) of the free memory that one sender may
	// hold, without and with a proof.
	strangersShare, provenShare = 16, 2
)

// room is the memory for bodies. It is allocated as bytes arrive, so that a sender who announces a
// body without sending it holds nearly nothing. One sender's share shrinks with the free memory,
// which leaves some for later senders. Unproven senders cannot exhaust the memory of proven ones.
type room struct {
	mu   sync.Mutex
	free int
	held map[sender]int
}

func newRoom() *room { return &room{free: maxBodies, held: map[sender]int{}} }

// share is the memory that a sender may hold now, in bytes.
func (m *room) share(s sender) int {
	if s.proven() {
		return m.free / provenShare
	}
	return max(0, m.free-reserve) / strangersShare
}

// take reports whether a sender gets more memory. It never waits: waiting senders that hold memory
// would block each other until they time out.
func (m *room) take(s sender, bytes int) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.held[s]+bytes > m.share(s) {
		return false
	}
	m.free -= bytes
	m.held[s] += bytes
	return true
}

func (m *room) give(s sender, bytes int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.free += bytes
	if m.held[s] -= bytes; m.held[s] == 0 {
		delete(m.held, s)
	}
}

// short reports whether a sender holds more than half of its share.
func (m *room) short(s sender) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return 2*m.held[s] > m.share(s)
}
