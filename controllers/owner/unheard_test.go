package owner

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestUnheardWorkDoesNotKeepAnInterruptedRun(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	value, err := unheard(ctx, func() (int, error) { return 7, errors.New("wrong") })
	assert.Equal(t, 7, value)
	assert.EqualError(t, err, "wrong")

	never := make(chan struct{})
	defer close(never)
	why := errors.New("somebody else converges")
	value, err = unheard(ctx, func() (int, error) { cancel(why); <-never; return 7, nil })
	assert.Zero(t, value)
	assert.ErrorIs(t, err, why)
	assert.EqualError(t, err, "interrupted: somebody else converges")
}
