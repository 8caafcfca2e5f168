package panics

import (
	"context"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
)

// Group is an errgroup.Group whose Wait panics with an *Error if one of its functions panicked,
// after all have ended. So the panic happens in the waiting goroutine. The zero value is ready.
type Group struct {
	group errgroup.Group
	of    *errgroup.Group // from WithContext; nil for the zero value
	first atomic.Pointer[Error]
}

// WithContext returns a Group, and a context that ends with the first error or panic, or with Wait.
func WithContext(ctx context.Context) (*Group, context.Context) {
	of, ctx := errgroup.WithContext(ctx)
	return &Group{of: of}, ctx
}

func (g *Group) inner() *errgroup.Group {
	if g.of != nil {
		return g.of
	}
	return &g.group
}

// SetLimit is like errgroup.Group.SetLimit.
func (g *Group) SetLimit(n int) { g.inner().SetLimit(n) }

// Go is like errgroup.Group.Go.
func (g *Group) Go(f func() error) {
	g.inner().Go(func() (err error) {
		defer func() {
			if p := recover(); p != nil {
				e := caught(p)
				g.first.CompareAndSwap(nil, e)
				err = e
			}
		}()
		return f()
	})
}

// Wait is like errgroup.Group.Wait, but panics if a function panicked.
func (g *Group) Wait() error {
	err := g.inner().Wait()
	if e := g.first.Load(); e != nil {
		panic(e)
	}
	return err
}
