// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"syscall"
	"time"

	"k8s.io/utils/clock"
)

// shutdownTimeout is how long an interrupted command may take to record what it sent and to release
// its leases. With it a command ends within two seconds.
const shutdownTimeout = 1800 * time.Millisecond

// signalMergeWindow is how long further signals count as the same interruption. A terminal sends
// Ctrl-C to all processes of a command, and make and shells forward it.
const signalMergeWindow = time.Second

// runInterruptible runs a command whose context ends with the first signal. CUE and Helm
// evaluations cannot be cancelled, so after patience, or at a second interruption, it does not wait
// for the command. The exit code is that of an interruption, unless that is the command's regular
// end (--watch) or its output is no longer read.
func runInterruptible(clock clock.Clock, signals <-chan os.Signal, stderr io.Writer, command func(context.Context) int) int {
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	done, unread := make(chan int, 1), false
	go func() { done <- command(ctx) }()
	select {
	case code := <-done:
		return code
	case signal := <-signals:
		if unread = signal == syscall.SIGPIPE; unread {
			cancel(errOutputClosed)
		}
	}
	first := clock.Now()
	timer := clock.NewTimer(shutdownTimeout)
	defer timer.Stop()
	cancel(nil)
	for {
		select {
		case code := <-done:
			if code == exitOK || unread {
				return code
			}
			return exitInterrupted
		case <-signals:
			if clock.Since(first) < signalMergeWindow {
				continue
			}
			fmt.Fprintln(stderr, "\nInterrupted twice: the command ended at once. Run it again to complete the missing parts.")
		case <-timer.C():
			if unread {
				return exitOutputClosed
			}
			fmt.Fprintf(stderr, "\nInterrupted: the command ended after %s, although a step that cannot be stopped was still running. Run it again to complete the missing parts.\n", shutdownTimeout)
		}
		return exitInterrupted
	}
}
