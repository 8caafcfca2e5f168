// SPDX-License-Identifier: Apache-2.0

package cri

import (
	"fmt"
	"net/netip"
	"sync"
)

// addressPool allocates addresses of a range. It reuses an address as late as possible, so that
// clients of a deleted pod do not reach another pod.
type addressPool struct {
	prefix netip.Prefix
	mutex  sync.Mutex
	last   netip.Addr
	inUse  map[netip.Addr]bool
}

// allocate allocates an unused address, but never the first (the network's) or the last of the
// range.
func (p *addressPool) allocate() (netip.Addr, error) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.inUse == nil {
		p.inUse, p.last = map[netip.Addr]bool{}, p.prefix.Masked().Addr()
	}
	first, candidate := p.prefix.Masked().Addr().Next(), p.last
	for range 1 << (p.prefix.Addr().BitLen() - p.prefix.Bits()) {
		if candidate = candidate.Next(); !p.prefix.Contains(candidate.Next()) {
			candidate = first
		}
		if !p.inUse[candidate] {
			p.inUse[candidate], p.last = true, candidate
			return candidate, nil
		}
	}
	return netip.Addr{}, fmt.Errorf("no address is left in %s", p.prefix)
}

// free frees an address.
func (p *addressPool) free(address netip.Addr) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	delete(p.inUse, address)
}
