// SPDX-License-Identifier: Apache-2.0

package schemas

import (
	"sync"

	"github.com/pergola-dev/pergola/schemas/resultcache"
)

// Cache stores results between calls of Validate, by content and by the digest of the schemas, so
// that only changes cost work. NewCache stores them for one process; NewPersistentCache stores them
// between processes. It is safe for concurrent use.
type Cache struct {
	objects *memoryCache[[]finding]
	rules   *memoryCache[[]ruleResult]
	disk    *resultcache.Store
}

// cachedRulesPerObject is the number of rule results stored per object. Objects are alike in most
// parts, so these results cover many more objects.
const cachedRulesPerObject = 8

// NewCache returns a cache for the results of the given number of objects, at least one.
func NewCache(entries int) *Cache {
	return &Cache{objects: newMemoryCache[[]finding](entries), rules: newMemoryCache[[]ruleResult](cachedRulesPerObject * entries)}
}

// NewPersistentCache returns a cache that writes the results about whole objects to a store.
func NewPersistentCache(store *resultcache.Store) *Cache {
	return &Cache{rules: newMemoryCache[[]ruleResult](defaultCachedRules), disk: store}
}

func (c *Cache) canCacheObjects() bool { return c.objects != nil || c.disk != nil }

func (c *Cache) findings(key resultcache.Key) ([]finding, bool) {
	if found, ok := c.objects.get(key); ok {
		return found, true
	}
	data, ok := c.disk.Get(key)
	if !ok {
		return nil, false
	}
	return readFindings(data)
}

func (c *Cache) store(key resultcache.Key, findings []finding) {
	c.objects.put(key, findings)
	if c.disk != nil {
		c.disk.Put(key, writeFindings(findings))
	}
}

func writeFindings(findings []finding) []byte {
	var w resultcache.Writer
	w.Uint(uint64(len(findings)))
	for _, f := range findings {
		for _, text := range []string{f.path, f.documentPath, string(f.typ), f.rule, f.message, string(f.severity), f.suggestion} {
			w.Text(text)
		}
	}
	return w.Bytes()
}

func readFindings(data []byte) ([]finding, bool) {
	r := resultcache.NewReader(data)
	var findings []finding
	for range r.Count() {
		findings = append(findings, finding{path: r.Text(), documentPath: r.Text(), typ: ViolationType(r.Text()), rule: r.Text(), message: r.Text(), severity: Severity(r.Text()), suggestion: r.Text()})
	}
	return findings, r.IsComplete()
}

// memoryCache stores values in memory, at most about twice the limit: when the young half is full,
// it drops the old half. A nil recent stores nothing.
type memoryCache[V any] struct {
	mutex      sync.Mutex
	limit      int
	young, old map[resultcache.Key]V
}

func newMemoryCache[V any](limit int) *memoryCache[V] {
	return &memoryCache[V]{limit: max(1, limit), young: map[resultcache.Key]V{}, old: map[resultcache.Key]V{}}
}

func (s *memoryCache[V]) get(key resultcache.Key) (V, bool) {
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

func (s *memoryCache[V]) put(key resultcache.Key, value V) {
	if s == nil {
		return
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.insert(key, value)
}

func (s *memoryCache[V]) insert(key resultcache.Key, value V) {
	if len(s.young) >= s.limit {
		s.old, s.young = s.young, map[resultcache.Key]V{}
	}
	s.young[key] = value
}
