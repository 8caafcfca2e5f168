// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"time"
)

// waitMessageInterval is the time between two messages of patiently.
const waitMessageInterval = 10 * time.Second

// reportWait prints repeatedly what it waits for, and for how long, until done is called. The text
// may change.
func reportWait(what func() string) (done func()) {
	began, ended, gone := time.Now(), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(gone)
		tick := time.NewTicker(waitMessageInterval)
		defer tick.Stop()
		for {
			select {
			case <-ended:
				return
			case <-tick.C:
				fmt.Printf("… waiting %s (%s)\n", what(), time.Since(began).Round(time.Second))
			}
		}
	}()
	return func() {
		close(ended)
		<-gone
	}
}

// runReportingWait runs a command that is silent for long, and returns its error.
func runReportingWait(ctx context.Context, what string, args []string) error {
	command := exec.CommandContext(ctx, args[0], args[1:]...)
	command.Stdin, command.Stdout, command.Stderr = os.Stdin, os.Stdout, os.Stderr
	done := reportWait(func() string { return what })
	defer done()
	return command.Run()
}
