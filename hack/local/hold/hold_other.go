//go:build !linux

package hold

import (
	"context"
	"errors"
)

var errNotHere = errors.New("namespaces are a feature of Linux")

// Holder is never created on this system.
type Holder struct{}

// Become does nothing on this system.
func Become() {}

// Possible returns an error: this is not Linux.
func Possible() error { return errNotHere }

// Serve fails on this system.
func Serve([]string) error { return errNotHere }

// Ensure fails on this system.
func Ensure(context.Context, string, string) (*Holder, error) { return nil, errNotHere }

// Find returns nil.
func Find(string) (*Holder, error) { return nil, nil }

// PID is never called on this system, like all methods of Holder.
func (*Holder) PID() int { return 0 }

// Run fails on this system.
func (*Holder) Run(context.Context, Command) (int, error) { return 0, errNotHere }

// Forward fails on this system.
func (*Holder) Forward(context.Context, int, string) error { return errNotHere }

// Proxy fails on this system.
func (*Holder) Proxy(context.Context, int) error { return errNotHere }

// Forwardings fails on this system.
func (*Holder) Forwardings(context.Context) ([]Forwarding, error) { return nil, errNotHere }

// Unforward fails on this system.
func (*Holder) Unforward(context.Context, int) error { return errNotHere }

// SetResolver fails on this system.
func (*Holder) SetResolver(context.Context, string) error { return errNotHere }

// Stop fails on this system.
func (*Holder) Stop(context.Context) error { return errNotHere }

// Outside fails on this system.
func (*Holder) Outside() (map[int]int, error) { return nil, errNotHere }
