// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package podnet

import (
	"errors"
	"net/netip"
)

var errUnsupported = errors.New("networks of pods need the namespaces of Linux")

// Network is never created on this system.
type Network struct{}

// Pod is never created on this system.
type Pod struct {
	Name  string
	IP    netip.Addr
	NetNS string
}

// Open fails on this system.
func Open(string) (*Network, error) { return nil, errUnsupported }

// RunInside fails on this system.
func RunInside(string, func() error) error { return errUnsupported }

// AddLocalRange fails on this system.
func (*Network) AddLocalRange(netip.Prefix) error { return errUnsupported }

// Add fails on this system.
func (*Network) Add(string, netip.Addr, Options) (*Pod, error) { return nil, errUnsupported }

// PodNames fails on this system.
func (*Network) PodNames() ([]string, error) { return nil, errUnsupported }

// Remove fails on this system.
func (*Network) Remove(string) error { return errUnsupported }

// Close fails on this system.
func (*Network) Close() error { return errUnsupported }

// Close fails on this system.
func (*Pod) Close() error { return errUnsupported }
