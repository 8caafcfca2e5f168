// SPDX-License-Identifier: Apache-2.0

package notification

import (
	"crypto/sha256"
	"time"

	"k8s.io/utils/lru"
)

// messageMemory remembers a bounded number of messages by their sums. Callers hold a lock.
type messageMemory struct{ lru *lru.Cache }

type messageDigest [sha256.Size]byte

func newMessageMemory(size int) *messageMemory { return &messageMemory{lru.New(size)} }

// markSent reports whether a message was not sent within the time again, and remembers it as sent.
func (m *messageMemory) markSent(message string, at time.Time, again time.Duration) bool {
	key := messageDigest(sha256.Sum256([]byte(message)))
	if last, ok := m.lru.Get(key); ok && at.Sub(last.(time.Time)) < again {
		return false
	}
	m.lru.Add(key, at)
	return true
}

// setState reports whether the message of a slot changed, and remembers the new one.
func (m *messageMemory) setState(slot, message string) bool {
	key, value := messageDigest(sha256.Sum256([]byte(slot))), messageDigest(sha256.Sum256([]byte(message)))
	if last, ok := m.lru.Get(key); ok && last.(messageDigest) == value {
		return false
	}
	m.lru.Add(key, value)
	return true
}

// forget forgets a message, or a slot that still has the message.
func (m *messageMemory) forget(slot, message string) {
	key := messageDigest(sha256.Sum256([]byte(slot)))
	if message != "" {
		if last, ok := m.lru.Get(key); ok && last.(messageDigest) != messageDigest(sha256.Sum256([]byte(message))) {
			return
		}
	}
	m.lru.Remove(key)
}
