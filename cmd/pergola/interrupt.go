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

// patience is how long a command may take to end after it was interrupted: what it sent is recorded
// and leases are given back, and people wait no longer than two seconds.
const patience = 1800 * time.Millisecond

// oneInterruption is how long signals after the first are the same interruption: a terminal sends
// Ctrl-C to all processes of a command, and make and shells pass theirs on.
const oneInterruption = time.Second

// interruptible runs a command whose context ends with the first signal. A command that does not
// end in time is left where it is, since neither CUE nor Helm can be stopped while they evaluate; a
// second interruption ends it at once. The exit code says that it was interrupted, unless the
// command takes that as its regular end (--watch), or that nobody reads what it prints.
func interruptible(clock clock.Clock, signals <-chan os.Signal, stderr io.Writer, command func(context.Context) int) int {
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	done, unread := make(chan int, 1), false
	go func() { done <- command(ctx) }()
	select {
	case code := <-done:
		return code
	case signal := <-signals:
		if unread = signal == syscall.SIGPIPE; unread {
			cancel(errUnread)
		}
	}
	first := clock.Now()
	timer := clock.NewTimer(patience)
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
			if clock.Since(first) < oneInterruption {
				continue
			}
			fmt.Fprintln(stderr, "\nInterrupted twice: ended at once. Run the command again to complete what is missing.")
		case <-timer.C():
			if unread {
				return exitUnread
			}
			fmt.Fprintf(stderr, "\nInterrupted: the command was ended after %s, because something that cannot be stopped still ran. Run it again to complete what is missing.\n", patience)
		}
		return exitInterrupted
	}
}
