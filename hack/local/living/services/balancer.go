// SPDX-License-Identifier: Apache-2.0

package services

import (
	"net/netip"
	"slices"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// balancer selects endpoints. All addresses of one port of a Service share it.
type balancer struct {
	clock clock.PassiveClock

	mu              sync.Mutex
	endpoints       []netip.AddrPort
	next            int
	affinityTimeout time.Duration // how long a client stays with its endpoint; 0 disables it
	clients         map[netip.Addr]client
}

type client struct {
	endpoint netip.AddrPort
	last     time.Time
}

// clientCleanupThreshold is the number of clients above which expired clients are removed.
const clientCleanupThreshold = 1000

func (b *balancer) set(endpoints []netip.AddrPort, sticky time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.endpoints, b.affinityTimeout = endpoints, sticky
	if sticky == 0 {
		b.clients = nil
	}
}

// candidates returns the endpoints in the order to try.
func (b *balancer) candidates(from netip.Addr) []netip.AddrPort {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := len(b.endpoints)
	if n == 0 {
		return nil
	}
	first := b.next % n
	if known, ok := b.clients[from]; ok && b.affinityTimeout > 0 && b.clock.Since(known.last) < b.affinityTimeout {
		if at := slices.Index(b.endpoints, known.endpoint); at >= 0 {
			return slices.Concat(b.endpoints[at:], b.endpoints[:at])
		}
	}
	b.next = first + 1
	return slices.Concat(b.endpoints[first:], b.endpoints[:first])
}

// recordEndpoint records the endpoint of a client.
func (b *balancer) recordEndpoint(from netip.Addr, endpoint netip.AddrPort) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.affinityTimeout == 0 {
		return
	}
	if b.clients == nil {
		b.clients = map[netip.Addr]client{}
	}
	now := b.clock.Now()
	if _, known := b.clients[from]; !known && len(b.clients) >= clientCleanupThreshold {
		for address, c := range b.clients {
			if now.Sub(c.last) >= b.affinityTimeout {
				delete(b.clients, address)
			}
		}
	}
	b.clients[from] = client{endpoint, now}
}
