// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/utils/clock"
)

// activityDelay is how long a command may be silent on a terminal before the life sign appears.
const activityDelay = 2 * time.Second

// activityIndicator shows in the last line of a terminal for how long a silent command has worked.
// Any other output clears the line first.
type activityIndicator struct {
	w     io.Writer
	name  string
	clock clock.WithTicker

	mutex                   sync.Mutex
	startedAt, lastOutputAt time.Time
	// hasOpenLine reports whether the last output did not end a line; it must stay.
	hasOpenLine, isShown bool
}

// addActivityIndicator adds a life sign to a command. If one of its outputs is not a terminal, it
// does nothing: one pager may show both.
func addActivityIndicator(cmd *cobra.Command) {
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		stdout, stderr := cmd.OutOrStdout(), cmd.ErrOrStderr()
		if !isTerminal(stdout) || !isTerminal(stderr) {
			return run(cmd, args)
		}
		sign := newActivityIndicator(stderr, cmd.CommandPath(), clock.RealClock{})
		cmd.SetOut(sign.wrap(stdout))
		cmd.SetErr(sign.wrap(stderr))
		stop := sign.start()
		defer stop()
		return run(cmd, args)
	}
}

func newActivityIndicator(w io.Writer, name string, c clock.WithTicker) *activityIndicator {
	return &activityIndicator{w: w, name: name, clock: c, startedAt: c.Now(), lastOutputAt: c.Now()}
}

// start checks every second. The returned function stops it and clears the line.
func (p *activityIndicator) start() (stop func()) {
	ticker := p.clock.NewTicker(time.Second)
	done := make(chan struct{})
	var group sync.WaitGroup
	group.Go(func() {
		for {
			select {
			case <-done:
				return
			case <-ticker.C():
				p.refresh()
			}
		}
	})
	return func() {
		ticker.Stop()
		close(done)
		group.Wait()
		p.mutex.Lock()
		defer p.mutex.Unlock()
		p.clear()
	}
}

func (p *activityIndicator) refresh() {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	now := p.clock.Now()
	if p.hasOpenLine || now.Sub(p.lastOutputAt) < activityDelay {
		return
	}
	p.isShown = true
	fmt.Fprintf(p.w, "\r\x1b[K%s: running for %s", strings.TrimSpace(p.name), now.Sub(p.startedAt).Truncate(time.Second))
}

func (p *activityIndicator) clear() {
	if p.isShown {
		fmt.Fprint(p.w, "\r\x1b[K")
	}
	p.isShown = false
}

// wrap wraps an output of the command so that it clears the line first.
func (p *activityIndicator) wrap(w io.Writer) io.Writer { return activityOutput{w, p} }

type activityOutput struct {
	io.Writer
	sign *activityIndicator
}

func (o activityOutput) Write(data []byte) (int, error) {
	p := o.sign
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.clear()
	p.lastOutputAt, p.hasOpenLine = p.clock.Now(), !bytes.HasSuffix(data, []byte("\n"))
	return o.Writer.Write(data)
}
