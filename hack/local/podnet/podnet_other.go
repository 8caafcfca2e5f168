//go:build !linux

package podnet

import (
	"errors"
	"net/netip"
)

var errNotHere = errors.New("networks of pods need the namespaces of Linux")

// Network is never created on this system.
type Network struct{}

// Pod is never created on this system.
type Pod struct {
	Name  string
	IP    netip.Addr
	NetNS string
}

// Open fails on this system.
func Open(string) (*Network, error) { return nil, errNotHere }

// Inside fails on this system.
func Inside(string, func() error) error { return errNotHere }

// Local fails on this system.
func (*Network) Local(netip.Prefix) error { return errNotHere }

// Add fails on this system.
func (*Network) Add(string, netip.Addr, Options) (*Pod, error) { return nil, errNotHere }

// Names fails on this system.
func (*Network) Names() ([]string, error) { return nil, errNotHere }

// Remove fails on this system.
func (*Network) Remove(string) error { return errNotHere }

// Close fails on this system.
func (*Network) Close() error { return errNotHere }

// Close fails on this system.
func (*Pod) Close() error { return errNotHere }
