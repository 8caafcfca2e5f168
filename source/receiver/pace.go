package receiver

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"
)

// Rates, in requests a second and at once.
const (
	requestRate, requestBurst = 20, 200 // of one source to one path
	failureRate, failureBurst = 5, 100  // of one source that proves nothing
	// to one receiver, proven; and of one source that has proven something to the path
	deliveryRate, deliveryBurst = 50, 500
	// manySources bounds what is remembered of sources; who is forgotten begins anew.
	manySources = 10_000
)

// longestPath is how much of a path is remembered, in bytes.
const longestPath = 512

// paces bounds how often requests are looked at.
type paces struct {
	clock                          clock.PassiveClock
	requests, failures, deliveries *lru.Cache
	senders                        *lru.Cache // those that were proven
	mu                             sync.Mutex
}

func newPaces(c clock.PassiveClock) *paces {
	return &paces{clock: c, requests: lru.New(manySources), failures: lru.New(manySources), deliveries: lru.New(manySources), senders: lru.New(manySources)}
}

// to is what a sender asks.
type to struct {
	path string
	sender
}

func shorten(path string) string { return path[:min(len(path), longestPath)] }

// request says whether a request is looked at. Whether the path is that of a receiver makes no
// difference. Failures stop strangers alone: who shares an address with them could not deliver any
// more.
func (p *paces) request(path string, from sender) bool {
	key := to{shorten(path), from}
	if from.proven() {
		return p.of(p.requests, key, deliveryRate, deliveryBurst).AllowN(p.clock.Now(), 1)
	}
	return p.of(p.requests, key, requestRate, requestBurst).AllowN(p.clock.Now(), 1) &&
		p.of(p.failures, from.source, failureRate, failureBurst).TokensAt(p.clock.Now()) >= 1
}

// failed counts a request that proved nothing.
func (p *paces) failed(from sender) {
	if !from.proven() {
		p.of(p.failures, from.source, failureRate, failureBurst).AllowN(p.clock.Now(), 1)
	}
}

// proven remembers that a source knows the secret of a path.
func (p *paces) proven(path, source string) {
	p.senders.Add(sender{source: source, path: shorten(path)}, nil)
}

// delivered says whether a source proved to know the secret of a path. Of a path that none
// delivered to, and of another source, this says no: strangers do not learn by it which receivers
// there are.
func (p *paces) delivered(path, source string) bool {
	_, ok := p.senders.Get(sender{source: source, path: shorten(path)})
	return ok
}

// delivery says whether a proven request is taken.
func (p *paces) delivery(receiver string) bool {
	return p.of(p.deliveries, receiver, deliveryRate, deliveryBurst).AllowN(p.clock.Now(), 1)
}

func (p *paces) of(cache *lru.Cache, key any, limit rate.Limit, burst int) *rate.Limiter {
	p.mu.Lock()
	defer p.mu.Unlock()
	if l, ok := cache.Get(key); ok {
		return l.(*rate.Limiter)
	}
	l := rate.NewLimiter(limit, burst)
	cache.Add(key, l)
	return l
}

// manySignatures bounds what is remembered of one receiver: more requests in the time in which a
// signature holds are put off.
const manySignatures = 4096

// seen remembers signatures for as long as they would be taken again. Only those of proven requests
// come here.
type seen struct {
	clock clock.PassiveClock
	mu    sync.Mutex
	by    map[string]map[string]time.Time
	swept time.Time
}

func newSeen(c clock.PassiveClock) *seen {
	return &seen{clock: c, by: map[string]map[string]time.Time{}}
}

// first says whether a signature is new; full that no more can be remembered at the moment.
func (s *seen) first(receiver, signature string, until time.Time) (ok, full bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.clock.Now()
	if now.Sub(s.swept) > time.Minute || len(s.by[receiver]) >= manySignatures {
		s.sweep(now)
	}
	known := s.by[receiver]
	if known == nil {
		known = map[string]time.Time{}
		s.by[receiver] = known
	}
	if old, ok := known[signature]; ok && now.Before(old) {
		return false, false
	}
	if len(known) >= manySignatures {
		return false, true
	}
	known[signature] = until
	return true, false
}

func (s *seen) sweep(now time.Time) {
	s.swept = now
	for receiver, known := range s.by {
		for signature, until := range known {
			if !now.Before(until) {
				delete(known, signature)
			}
		}
		if len(known) == 0 {
			delete(s.by, receiver)
		}
	}
}
