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
	// manySources bounds the remembered sources; an evicted one starts anew.
	manySources = 10_000
)

// longestPath is the remembered length of a path, in bytes.
const longestPath = 512

// paces bounds the rates of requests.
type paces struct {
	clock                          clock.PassiveClock
	requests, failures, deliveries *lru.Cache
	senders                        *lru.Cache // proven ones
	mu                             sync.Mutex
}

func newPaces(c clock.PassiveClock) *paces {
	return &paces{clock: c, requests: lru.New(manySources), failures: lru.New(manySources), deliveries: lru.New(manySources), senders: lru.New(manySources)}
}

// to is a path that a sender requests.
type to struct {
	path string
	sender
}

func shorten(path string) string { return path[:min(len(path), longestPath)] }

// request reports whether the rates permit a request. It makes no difference whether the path is a
// receiver's. Failures count only against unproven senders, so that others at the same address can
// still deliver.
func (p *paces) request(path string, from sender) bool {
	key := to{shorten(path), from}
	if from.proven() {
		return p.of(p.requests, key, deliveryRate, deliveryBurst).AllowN(p.clock.Now(), 1)
	}
	return p.of(p.requests, key, requestRate, requestBurst).AllowN(p.clock.Now(), 1) &&
		p.of(p.failures, from.source, failureRate, failureBurst).TokensAt(p.clock.Now()) >= 1
}

// failed counts a request without proof.
func (p *paces) failed(from sender) {
	if !from.proven() {
		p.of(p.failures, from.source, failureRate, failureBurst).AllowN(p.clock.Now(), 1)
	}
}

// proven records that a source knows the secret of a path.
func (p *paces) proven(path, source string) {
	p.senders.Add(sender{source: source, path: shorten(path)}, nil)
}

// delivered reports whether a source has proven the secret of a path. It is false for other sources
// and unused paths, so that strangers cannot find out which receivers exist.
func (p *paces) delivered(path, source string) bool {
	_, ok := p.senders.Get(sender{source: source, path: shorten(path)})
	return ok
}

// delivery reports whether the rate permits a proven request.
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

// manySignatures bounds the remembered signatures of one receiver; requests beyond it are refused
// until older signatures expire.
const manySignatures = 4096

// seen remembers signatures of proven requests while they are valid.
type seen struct {
	clock clock.PassiveClock
	mu    sync.Mutex
	by    map[string]map[string]time.Time
	swept time.Time
}

func newSeen(c clock.PassiveClock) *seen {
	return &seen{clock: c, by: map[string]map[string]time.Time{}}
}

// first reports whether a signature is new; full if no more can be remembered now.
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
