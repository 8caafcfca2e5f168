// SPDX-License-Identifier: Apache-2.0

package managedresource

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	testingclock "k8s.io/utils/clock/testing"
)

// TestExtendContext: the end of a run has no limit until it is interrupted, and a short one after
// that.
func TestExtendContext(t *testing.T) {
	pass, end := context.WithCancel(t.Context())
	clk := testingclock.NewFakeClock(time.Now())
	writing, cancel := extendContext(pass, clk, finalWriteTimeout)
	defer cancel()
	clk.Step(time.Hour)
	require.False(t, clk.HasWaiters(), "nobody has interrupted it")
	require.NoError(t, writing.Err())

	end()
	require.Eventually(t, clk.HasWaiters, time.Minute, time.Millisecond)
	clk.Step(finalWriteTimeout - time.Millisecond)
	require.True(t, clk.HasWaiters())
	require.NoError(t, writing.Err(), "what is under way may end")
	clk.Step(time.Millisecond)
	<-writing.Done()
	assert.ErrorIs(t, writing.Err(), context.Canceled)
}

// TestExtendContextCancel: the context ends once everything is written.
func TestExtendContextCancel(t *testing.T) {
	pass, end := context.WithCancel(t.Context())
	clk := testingclock.NewFakeClock(time.Now())
	writing, cancel := extendContext(pass, clk, finalWriteTimeout)
	end()
	require.Eventually(t, clk.HasWaiters, time.Minute, time.Millisecond)
	cancel()
	require.Error(t, writing.Err())
	require.Eventually(t, func() bool { return !clk.HasWaiters() }, time.Minute, time.Millisecond)
}
