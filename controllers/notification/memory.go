package notification

import (
	"crypto/sha256"
	"time"

	"k8s.io/utils/lru"
)

// memory remembers a bounded number of messages by their sums. Callers hold a lock.
type memory struct{ lru *lru.Cache }

type sum [sha256.Size]byte

func newMemory(size int) *memory { return &memory{lru.New(size)} }

// due reports whether a message was not sent within the time again, and remembers it as sent.
func (m *memory) due(message string, at time.Time, again time.Duration) bool {
	key := sum(sha256.Sum256([]byte(message)))
	if last, ok := m.lru.Get(key); ok && at.Sub(last.(time.Time)) < again {
		return false
	}
	m.lru.Add(key, at)
	return true
}

// changed reports whether the message of a slot changed, and remembers the new one.
func (m *memory) changed(slot, message string) bool {
	key, value := sum(sha256.Sum256([]byte(slot))), sum(sha256.Sum256([]byte(message)))
	if last, ok := m.lru.Get(key); ok && last.(sum) == value {
		return false
	}
	m.lru.Add(key, value)
	return true
}

// drop forgets a message, or a slot that still has the message.
func (m *memory) drop(slot, message string) {
	key := sum(sha256.Sum256([]byte(slot)))
	if message != "" {
		if last, ok := m.lru.Get(key); ok && last.(sum) != sum(sha256.Sum256([]byte(message))) {
			return
		}
	}
	m.lru.Remove(key)
}
