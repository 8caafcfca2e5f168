package schemas

import "sync"

// Cache keeps results by the content of the object and the digest of the schemas, so that work is proportional to what
// changed. It is safe for concurrent use. It holds at most about twice the given number of entries: when the young
// half is full, the old half is dropped.
type Cache struct {
	mutex      sync.Mutex
	limit      int
	young, old map[[32]byte][]finding
}

// NewCache gives a cache for the results of the given number of objects; at least one.
func NewCache(entries int) *Cache {
	return &Cache{limit: max(1, entries), young: map[[32]byte][]finding{}, old: map[[32]byte][]finding{}}
}

func (c *Cache) get(key [32]byte) ([]finding, bool) {
	if c == nil {
		return nil, false
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if findings, ok := c.young[key]; ok {
		return findings, true
	}
	findings, ok := c.old[key]
	if ok {
		c.insert(key, findings)
	}
	return findings, ok
}

func (c *Cache) put(key [32]byte, findings []finding) {
	if c == nil {
		return
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.insert(key, findings)
}

func (c *Cache) insert(key [32]byte, findings []finding) {
	if len(c.young) >= c.limit {
		c.old, c.young = c.young, make(map[[32]byte][]finding, c.limit)
	}
	c.young[key] = findings
}
