// SPDX-License-Identifier: Apache-2.0

package panics

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestRunDetachedReturnsWhenInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	value, err := RunDetached(ctx, func() (int, error) { return 7, errors.New("wrong") })
	assert.Equal(t, 7, value)
	assert.EqualError(t, err, "wrong")

	never := make(chan struct{})
	defer close(never)
	why := errors.New("somebody else converges")
	value, err = RunDetached(ctx, func() (int, error) { cancel(why); <-never; return 7, nil })
	assert.Zero(t, value)
	assert.ErrorIs(t, err, why)
	assert.EqualError(t, err, "interrupted: somebody else converges")
}

// TestRunDetachedReturnsPanicAsError: anybody may write a template, so its panic must not end the
// process.
func TestRunDetachedReturnsPanicAsError(t *testing.T) {
	_, err := RunDetached(t.Context(), func() (int, error) { panic("boom") })
	require.ErrorContains(t, err, "a fault of Pergola (boom)")
}
