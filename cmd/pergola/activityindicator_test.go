// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	clocktesting "k8s.io/utils/clock/testing"
)

func TestActivityIndicator(t *testing.T) {
	c := clocktesting.NewFakeClock(time.Unix(0, 0))
	var terminal bytes.Buffer
	p := newActivityIndicator(&terminal, "pergola render", c)
	out := p.wrap(&terminal)
	wait := func(d time.Duration) string {
		terminal.Reset()
		c.Step(d)
		p.refresh()
		return terminal.String()
	}
	assert.Empty(t, wait(1900*time.Millisecond), "nobody wonders yet")
	assert.Equal(t, "\r\x1b[Kpergola render: running for 2s", wait(200*time.Millisecond))
	assert.Equal(t, "\r\x1b[Kpergola render: running for 3s", wait(time.Second), "in the same line")

	terminal.Reset()
	fmt.Fprintln(out, "one")
	assert.Equal(t, "\r\x1b[Kone\n", terminal.String(), "the line goes first")
	assert.Empty(t, wait(time.Second), "it has just spoken")
	fmt.Fprint(out, "half a line")
	assert.Empty(t, wait(time.Minute), "which must not be overwritten")
	fmt.Fprintln(out, ", and the rest")
	assert.Equal(t, "\r\x1b[Kpergola render: running for 1m6s", wait(2*time.Second))

	terminal.Reset()
	p.start()()
	assert.Equal(t, "\r\x1b[K", terminal.String(), "nothing stays")
	p.start()()
	assert.Equal(t, "\r\x1b[K", terminal.String())
}

// TestActivityIndicatorTicker: the ticker triggers the check.
func TestActivityIndicatorTicker(t *testing.T) {
	c := clocktesting.NewFakeClock(time.Unix(0, 0))
	said := make(lineChannel, 1)
	stop := newActivityIndicator(said, "pergola why", c).start()
	defer stop()
	require.True(t, c.HasWaiters())
	c.Step(3 * time.Second)
	assert.Equal(t, "\r\x1b[Kpergola why: running for 3s", <-said)
}

// lineChannel sends each write to a channel and drops it if no one receives.
type lineChannel chan string

func (l lineChannel) Write(data []byte) (int, error) {
	select {
	case l <- string(data):
	default:
	}
	return len(data), nil
}

// TestNoActivityIndicatorOutsideTerminals: outputs other than terminals get no life sign.
func TestNoActivityIndicatorOutsideTerminals(t *testing.T) {
	o := pergola(t, "validate", "../../landscapes/local")
	assert.Equal(t, 0, o.code)
	assert.NotContains(t, o.stdout+o.stderr, "running for")
}
