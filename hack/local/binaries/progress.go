// SPDX-License-Identifier: Apache-2.0

package binaries

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// Progress reports long work. On a terminal it updates one line every second; elsewhere it prints a
// line at the start, every half minute, and at the end.
type Progress struct {
	Out      io.Writer
	Terminal bool
}

// PrintLine writes one line.
func (p Progress) PrintLine(format string, args ...any) { fmt.Fprintf(p.Out, format+"\n", args...) }

// StartStep reports the start of step n and returns the function to call at its end.
func (p Progress) StartStep(what string, n, of int) (done func(error)) {
	start := time.Now()
	elapsed := func() time.Duration { return time.Since(start).Round(time.Second) }
	interval := 30 * time.Second
	line := func() { p.PrintLine("%s (%d of %d), %s", what, n, of, elapsed()) }
	if p.Terminal {
		interval = time.Second
		line = func() { fmt.Fprintf(p.Out, "\r\033[K%s (%d of %d), %s", what, n, of, elapsed()) }
	} else {
		p.PrintLine("%s (%d of %d)", what, n, of)
	}
	stop := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() {
		tick := time.NewTicker(interval)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				return
			case <-tick.C:
				line()
			}
		}
	})
	return func(err error) {
		close(stop)
		running.Wait()
		end := ""
		if p.Terminal {
			end = "\r\033[K"
		}
		outcome := "done"
		if err != nil {
			outcome = "failed"
		}
		p.PrintLine("%s%s (%d of %d): %s after %s", end, what, n, of, outcome, elapsed())
	}
}
