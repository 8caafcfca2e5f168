package receiver

import "sync"

// Memory of bodies.
const (
	maxBodies  = 64 << 20 // bytes, of all bodies together
	firstPiece = 4 << 10  // bytes, of a body of which nothing has arrived yet
	// reserve is left by those who have proven nothing, in bytes.
	reserve = 16 << 20
	// strangersShare and provenShare are the part (1/n) of what is free that one sender may hold,
	// without and with a proof.
	strangersShare, provenShare = 16, 2
)

// room is the memory for bodies. It is taken as bytes arrive, so who announces a body and does not
// send it holds nearly nothing. How much one sender may hold shrinks with what is free, so that
// something is left for one who comes after it; and those who have proven something have room
// whatever strangers hold.
type room struct {
	mu   sync.Mutex
	free int
	held map[sender]int
}

func newRoom() *room { return &room{free: maxBodies, held: map[sender]int{}} }

// share is how much a sender may hold now.
func (m *room) share(s sender) int {
	if s.proven() {
		return m.free / provenShare
	}
	return max(0, m.free-reserve) / strangersShare
}

// take says whether a sender gets more memory. It never waits: memory that is waited for by those
// who hold some would come free by nothing but the end of their time.
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

// short says whether a sender holds more than half of its share.
func (m *room) short(s sender) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return 2*m.held[s] > m.share(s)
}
