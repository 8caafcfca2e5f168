// SPDX-License-Identifier: Apache-2.0

package panics

import (
	"context"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
)

// Group is an errgroup.Group whose Wait panics with an *Error if one of its functions panicked,
// after all have ended. So the panic happens in the waiting goroutine. The zero value is ready.
type Group struct {
	group        errgroup.Group
	contextGroup *errgroup.Group // from WithContext, or nil for the zero value
	firstPanic   atomic.Pointer[Error]
}

// WithContext returns a Group, and a context that ends with the first error or panic, or with Wait.
func WithContext(ctx context.Context) (*Group, context.Context) {
	of, ctx := errgroup.WithContext(ctx)
	return &Group{contextGroup: of}, ctx
}

func (g *Group) errGroup() *errgroup.Group {
	if g.contextGroup != nil {
		return g.contextGroup
	}
	return &g.group
}

// SetLimit is like errgroup.Group.SetLimit.
func (g *Group) SetLimit(n int) { g.errGroup().SetLimit(n) }

// Go is like errgroup.Group.Go.
func (g *Group) Go(f func() error) {
	g.errGroup().Go(func() (err error) {
		defer func() {
			if p := recover(); p != nil {
				e := newError(p)
				g.firstPanic.CompareAndSwap(nil, e)
				err = e
			}
		}()
		return f()
	})
}

// Wait is like errgroup.Group.Wait, but panics if a function panicked.
func (g *Group) Wait() error {
	err := g.errGroup().Wait()
	if e := g.firstPanic.Load(); e != nil {
		panic(e)
	}
	return err
}
