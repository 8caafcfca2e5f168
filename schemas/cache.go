package schemas

import "sync"

// Cache keeps results between calls of Validate in one process, by content and by the digest of the schemas, so that work
// is proportional to what changed. It is safe for concurrent use.
type Cache struct {
	objects *store[[]finding]
	rules   *store[[]ruled]
}

// rulesPerObject is how many results of rules are kept for each object that a cache is for: objects are alike in most parts,
// so that it holds those of many more.
const rulesPerObject = 8

// NewCache gives a cache for the results of the given number of objects; at least one.
func NewCache(entries int) *Cache {
	return &Cache{objects: newStore[[]finding](entries), rules: newStore[[]ruled](rulesPerObject * entries)}
}

// store keeps values by digests. It holds at most about twice the given number: when the young half is full, the old half
// is dropped. A nil store keeps nothing.
type store[V any] struct {
	mutex      sync.Mutex
	limit      int
	young, old map[digest]V
}

// digest is that of the content that a result depends on.
type digest [32]byte

func newStore[V any](limit int) *store[V] {
	return &store[V]{limit: max(1, limit), young: map[digest]V{}, old: map[digest]V{}}
}

func (s *store[V]) get(key digest) (V, bool) {
	if s == nil {
		var none V
		return none, false
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if value, ok := s.young[key]; ok {
		return value, true
	}
	value, ok := s.old[key]
	if ok {
		s.insert(key, value)
	}
	return value, ok
}

func (s *store[V]) put(key digest, value V) {
	if s == nil {
		return
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.insert(key, value)
}

func (s *store[V]) insert(key digest, value V) {
	if len(s.young) >= s.limit {
		s.old, s.young = s.young, map[digest]V{}
	}
	s.young[key] = value
}
