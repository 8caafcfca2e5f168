// SPDX-License-Identifier: Apache-2.0

package receiver

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"
)

// Rates, in requests a second, and bursts.
const (
	requestRate, requestBurst = 20, 200 // by one source to one path
	failureRate, failureBurst = 5, 100  // by one source without proof
	// deliveryRate and deliveryBurst bound proven requests: to one receiver, and by one source to
	// one path.
	deliveryRate, deliveryBurst = 50, 500
	// maxSources bounds the remembered sources; an evicted one starts from the beginning.
	maxSources = 10_000
)

// maxPathLength is the remembered length of a path, in bytes.
const maxPathLength = 512

// rateLimits bounds the rates of requests.
type rateLimits struct {
	clock                          clock.PassiveClock
	requests, failures, deliveries *lru.Cache
	provenSenders                  *lru.Cache // proven ones
	mu                             sync.Mutex
}

func newRateLimits(c clock.PassiveClock) *rateLimits {
	return &rateLimits{clock: c, requests: lru.New(maxSources), failures: lru.New(maxSources), deliveries: lru.New(maxSources), provenSenders: lru.New(maxSources)}
}

// rateKey is a path that a sender requests.
type rateKey struct {
	path string
	sender
}

func shortenPath(path string) string { return path[:min(len(path), maxPathLength)] }

// allowRequest reports whether the rates permit a request. It makes no difference whether the path
// is a receiver's. Failures count only against unproven senders, so that others at the same address
// can still deliver.
func (p *rateLimits) allowRequest(path string, from sender) bool {
	key := rateKey{shortenPath(path), from}
	if from.isProven() {
		return p.limiter(p.requests, key, deliveryRate, deliveryBurst).AllowN(p.clock.Now(), 1)
	}
	return p.limiter(p.requests, key, requestRate, requestBurst).AllowN(p.clock.Now(), 1) &&
		p.limiter(p.failures, from.source, failureRate, failureBurst).TokensAt(p.clock.Now()) >= 1
}

// countFailure counts a request without proof.
func (p *rateLimits) countFailure(from sender) {
	if !from.isProven() {
		p.limiter(p.failures, from.source, failureRate, failureBurst).AllowN(p.clock.Now(), 1)
	}
}

// recordProof records that a source knows the secret of a path.
func (p *rateLimits) recordProof(path, source string) {
	p.provenSenders.Add(sender{source: source, path: shortenPath(path)}, nil)
}

// isProvenSource reports whether a source has proven the secret of a path. It is false for other
// sources and unused paths, so that strangers cannot find out which receivers exist.
func (p *rateLimits) isProvenSource(path, source string) bool {
	_, ok := p.provenSenders.Get(sender{source: source, path: shortenPath(path)})
	return ok
}

// allowDelivery reports whether the rate permits a proven request.
func (p *rateLimits) allowDelivery(receiver string) bool {
	return p.limiter(p.deliveries, receiver, deliveryRate, deliveryBurst).AllowN(p.clock.Now(), 1)
}

func (p *rateLimits) limiter(cache *lru.Cache, key any, limit rate.Limit, burst int) *rate.Limiter {
	p.mu.Lock()
	defer p.mu.Unlock()
	if l, ok := cache.Get(key); ok {
		return l.(*rate.Limiter)
	}
	l := rate.NewLimiter(limit, burst)
	cache.Add(key, l)
	return l
}

// maxSignatures bounds the remembered signatures of one receiver; requests beyond it are refused
// until older signatures expire.
const maxSignatures = 4096

// usedSignatures remembers signatures of proven requests while they are valid.
type usedSignatures struct {
	clock      clock.PassiveClock
	mu         sync.Mutex
	byReceiver map[string]map[string]time.Time
	swept      time.Time
}

func newUsedSignatures(c clock.PassiveClock) *usedSignatures {
	return &usedSignatures{clock: c, byReceiver: map[string]map[string]time.Time{}}
}

// add reports whether a signature is new; full means that no more can be remembered now.
func (s *usedSignatures) add(receiver, signature string, until time.Time) (ok, full bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.clock.Now()
	if now.Sub(s.swept) > time.Minute || len(s.byReceiver[receiver]) >= maxSignatures {
		s.removeExpired(now)
	}
	known := s.byReceiver[receiver]
	if known == nil {
		known = map[string]time.Time{}
		s.byReceiver[receiver] = known
	}
	if old, ok := known[signature]; ok && now.Before(old) {
		return false, false
	}
	if len(known) >= maxSignatures {
		return false, true
	}
	known[signature] = until
	return true, false
}

func (s *usedSignatures) removeExpired(now time.Time) {
	s.swept = now
	for receiver, known := range s.byReceiver {
		for signature, until := range known {
			if !now.Before(until) {
				delete(known, signature)
			}
		}
		if len(known) == 0 {
			delete(s.byReceiver, receiver)
		}
	}
}
