//go:build !linux

package hold

import (
	"context"
	"errors"
)

var errNotHere = errors.New("namespaces are a feature of Linux")

// Holder is a running holder; there are none on this system.
type Holder struct{}

// Become does nothing on this system.
func Become() {}

// Possible says that this is the wrong system.
func Possible() error { return errNotHere }

// Serve is refused on this system.
func Serve([]string) error { return errNotHere }

// Ensure is refused on this system.
func Ensure(context.Context, string, string) (*Holder, error) { return nil, errNotHere }

// Find finds none.
func Find(string) (*Holder, error) { return nil, nil }

// PID is never called on this system, like all methods of a Holder.
func (*Holder) PID() int { return 0 }

// Run is refused on this system.
func (*Holder) Run(context.Context, Command) (int, error) { return 0, errNotHere }

// Forward is refused on this system.
func (*Holder) Forward(context.Context, int, string) error { return errNotHere }

// Proxy is refused on this system.
func (*Holder) Proxy(context.Context, int) error { return errNotHere }

// Forwardings is refused on this system.
func (*Holder) Forwardings(context.Context) ([]Forwarding, error) { return nil, errNotHere }

// Unforward is refused on this system.
func (*Holder) Unforward(context.Context, int) error { return errNotHere }

// SetResolver is refused on this system.
func (*Holder) SetResolver(context.Context, string) error { return errNotHere }

// Stop is refused on this system.
func (*Holder) Stop(context.Context) error { return errNotHere }

// Outside is refused on this system.
func (*Holder) Outside() (map[int]int, error) { return nil, errNotHere }
