// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package hold

import (
	"context"
	"errors"
)

var errUnsupported = errors.New("namespaces are a feature of Linux")

// Holder is never created on this system.
type Holder struct{}

// InitHolder does nothing on this system.
func InitHolder() {}

// CheckSupport returns an error: this is not Linux.
func CheckSupport() error { return errUnsupported }

// Serve fails on this system.
func Serve([]string) error { return errUnsupported }

// Ensure fails on this system.
func Ensure(context.Context, string, string) (*Holder, error) { return nil, errUnsupported }

// Find returns nil.
func Find(string) (*Holder, error) { return nil, nil }

// PID is never called on this system, like all methods of Holder.
func (*Holder) PID() int { return 0 }

// Run fails on this system.
func (*Holder) Run(context.Context, Command) (int, error) { return 0, errUnsupported }

// Forward fails on this system.
func (*Holder) Forward(context.Context, int, string) error { return errUnsupported }

// Proxy fails on this system.
func (*Holder) Proxy(context.Context, int) error { return errUnsupported }

// Forwardings fails on this system.
func (*Holder) Forwardings(context.Context) ([]Forwarding, error) { return nil, errUnsupported }

// Unforward fails on this system.
func (*Holder) Unforward(context.Context, int) error { return errUnsupported }

// SetResolver fails on this system.
func (*Holder) SetResolver(context.Context, string) error { return errUnsupported }

// Stop fails on this system.
func (*Holder) Stop(context.Context) error { return errUnsupported }

// HostPIDs fails on this system.
func (*Holder) HostPIDs() (map[int]int, error) { return nil, errUnsupported }
