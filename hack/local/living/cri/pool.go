package cri

import (
	"fmt"
	"net/netip"
	"sync"
)

// pool gives addresses of a range: each one again as late as can be, so that whoever still talks to
// a pod that is gone does not reach another one.
type pool struct {
	prefix netip.Prefix
	mutex  sync.Mutex
	last   netip.Addr
	used   map[netip.Addr]bool
}

// take gives one that is not used. The first of the range, which is the network's, is never given,
// nor the last.
func (p *pool) take() (netip.Addr, error) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.used == nil {
		p.used, p.last = map[netip.Addr]bool{}, p.prefix.Masked().Addr()
	}
	first, candidate := p.prefix.Masked().Addr().Next(), p.last
	for range 1 << (p.prefix.Addr().BitLen() - p.prefix.Bits()) {
		if candidate = candidate.Next(); !p.prefix.Contains(candidate.Next()) {
			candidate = first
		}
		if !p.used[candidate] {
			p.used[candidate], p.last = true, candidate
			return candidate, nil
		}
	}
	return netip.Addr{}, fmt.Errorf("no address is left in %s", p.prefix)
}

// give takes one back.
func (p *pool) give(address netip.Addr) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	delete(p.used, address)
}
