// SPDX-License-Identifier: Apache-2.0

package owner

import (
	"context"
	"errors"
)

// LeaseLostError is the cause of a context that ends because another process may converge now:
// nothing more is written, not even a status.
type LeaseLostError struct{ Err error }

func (e *LeaseLostError) Error() string {
	return "stopped, because the lease was lost: " + e.Err.Error()
}
func (e *LeaseLostError) Unwrap() error { return e.Err }

// isLeaseLost reports whether a context has ended with a LeaseLostError.
func isLeaseLost(ctx context.Context) bool {
	return ctx.Err() != nil && errors.As(context.Cause(ctx), new(*LeaseLostError))
}
