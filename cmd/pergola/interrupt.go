package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"
)

// patience is how long a command may take to end after it was interrupted: what it sent is recorded and leases are
// given back, and people wait no longer than two seconds.
const patience = 1800 * time.Millisecond

// interruptible runs a command whose context ends with the first signal. A command that does not end in time is left
// where it is, since neither CUE nor Helm can be stopped while they evaluate; a second signal ends it at once. The
// exit code says that it was interrupted, unless the command takes that as its regular end (--watch).
func interruptible(signals <-chan os.Signal, stderr io.Writer, command func(context.Context) int) int {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	done := make(chan int, 1)
	go func() { done <- command(ctx) }()
	select {
	case code := <-done:
		return code
	case <-signals:
	}
	cancel()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case code := <-done:
		if code == exitOK {
			return exitOK
		}
	case <-signals:
		fmt.Fprintln(stderr, "\nInterrupted twice: ended at once. Run the command again to complete what is missing.")
	case <-timer.C:
		fmt.Fprintf(stderr, "\nInterrupted: the command was ended after %s, because something that cannot be stopped still ran. Run it again to complete what is missing.\n", patience)
	}
	return exitInterrupted
}
