//go:build !linux

package podnet

import (
	"errors"
	"net/netip"
)

var errNotHere = errors.New("networks of pods need the namespaces of Linux")

// Network is never made on this system.
type Network struct{}

// Pod is never made on this system.
type Pod struct {
	Name  string
	IP    netip.Addr
	NetNS string
}

// Open is refused on this system.
func Open(string) (*Network, error) { return nil, errNotHere }

// Inside is refused on this system.
func Inside(string, func() error) error { return errNotHere }

// Local is refused on this system.
func (*Network) Local(netip.Prefix) error { return errNotHere }

// Add is refused on this system.
func (*Network) Add(string, netip.Addr, Options) (*Pod, error) { return nil, errNotHere }

// Names is refused on this system.
func (*Network) Names() ([]string, error) { return nil, errNotHere }

// Remove is refused on this system.
func (*Network) Remove(string) error { return errNotHere }

// Close is refused on this system.
func (*Network) Close() error { return errNotHere }

// Close is refused on this system.
func (*Pod) Close() error { return errNotHere }
