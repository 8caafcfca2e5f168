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
	requestRate, requestBurst   = 20, 200 // of one source to one path
	failureRate, failureBurst   = 5, 100  // of one source that proves nothing
	deliveryRate, deliveryBurst = 50, 500 // to one receiver, proven
	// manySources bounds what is remembered of sources; who is forgotten begins anew.
	manySources = 10_000
)

// paces bounds how often requests are looked at.
type paces struct {
	clock                          clock.PassiveClock
	requests, failures, deliveries *lru.Cache
	mu                             sync.Mutex
}

func newPaces(c clock.PassiveClock) *paces {
	return &paces{clock: c, requests: lru.New(manySources), failures: lru.New(manySources), deliveries: lru.New(manySources)}
}

type pathAndSource struct{ path, source string }

// request says whether a request is looked at. Whether the path is that of a receiver makes no difference.
func (p *paces) request(path, source string) bool {
	if len(path) > 512 {
		path = path[:512]
	}
	return p.of(p.requests, pathAndSource{path, source}, requestRate, requestBurst).AllowN(p.clock.Now(), 1) &&
		p.of(p.failures, source, failureRate, failureBurst).TokensAt(p.clock.Now()) >= 1
}

// failed counts a request that proved nothing.
func (p *paces) failed(source string) {
	p.of(p.failures, source, failureRate, failureBurst).AllowN(p.clock.Now(), 1)
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

// manySignatures bounds what is remembered of one receiver: more requests in the time in which a signature holds are put
// off.
const manySignatures = 4096

// seen remembers signatures for as long as they would be taken again. Only those of proven requests come here.
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
