package owner

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/pergola-dev/pergola/apply/flow"
	"github.com/pergola-dev/pergola/render"
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

// What is rendered is anybody's: a panic of it ends no process.
func TestAPanicThatNobodyHearsIsAnError(t *testing.T) {
	_, err := unheard(t.Context(), func() (int, error) { panic("boom") })
	require.ErrorContains(t, err, "a fault of Pergola (boom)")
}

func TestAPanicOfOneBundleIsItsError(t *testing.T) {
	work := &run{reconciler: &Reconciler{Clock: clocktesting.NewFakeClock(time.Now())}, owner: &subject{}, report: &Report{}}
	// Without a cluster there is nothing that could be applied to.
	err := work.runBundles(t.Context(), []render.Bundle{{Name: "a", Delivery: render.Delivery{Direct: true}, Cluster: render.ClusterRuntime}}, nil, func(flow.State, string) {})
	require.ErrorContains(t, err, "a fault of Pergola")
}
