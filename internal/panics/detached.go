// SPDX-License-Identifier: Apache-2.0

package panics

import (
	"context"
	"fmt"
)

// RunDetached runs work that cannot be stopped (CUE, Helm, key generation) and returns without it
// when the context ends. The work continues and its result is dropped, so that an interrupted run
// still has time to write its state. A panic becomes an error.
func RunDetached[T any](ctx context.Context, work func() (T, error)) (T, error) {
	type outcome struct {
		value T
		err   error
	}
	done := make(chan outcome, 1)
	go func() {
		var o outcome
		o.err = AsError(func() (err error) {
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
