package owner

import (
	"context"
	"fmt"

	"github.com/pergola-dev/pergola/internal/panics"
)

// unheard runs what cannot be stopped (CUE, Helm, the generation of keys) and does not wait for it when the context ends:
// then it goes on, and its result is dropped. So an interrupted run still has the time to write its state. A panic is an error: what is
// rendered is anybody's.
func unheard[T any](ctx context.Context, work func() (T, error)) (T, error) {
	type outcome struct {
		value T
		err   error
	}
	done := make(chan outcome, 1)
	go func() {
		var o outcome
		o.err = panics.Safe(func() (err error) {
			o.value, err = work()
			return err
		})()
		done <- o
	}()
	select {
	case o := <-done:
		return o.value, o.err
	case <-ctx.Done():
		var none T
		return none, fmt.Errorf("interrupted: %w", context.Cause(ctx))
	}
}
