// SPDX-License-Identifier: Apache-2.0

// Command local runs Kubernetes control planes on this machine, as plain processes: real API
// servers with fake nodes. See README.md.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// Exit codes, as everywhere in Pergola: 1 is a finding, 2 a usage mistake or an error.
const (
	exitFinding = 1
	exitError   = 2
)

// errFinding ends a command with exit code 1; the command has printed its findings itself.
var errFinding = errors.New("not all clusters are ready")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := rootCommand().ExecuteContext(ctx)
	var code commandExitCode
	switch {
	case errors.As(err, &code):
		os.Exit(int(code))
	case err == nil:
		return
	case errors.Is(err, errFinding):
		os.Exit(exitFinding)
	case errors.Is(err, errAlreadyPrinted):
	case ctx.Err() != nil:
		fmt.Fprintf(os.Stderr, "interrupted: %s\nStarted processes keep running; \"down\" stops them.\n", err)
	default:
		fmt.Fprintf(os.Stderr, "error: %s\n", err)
	}
	os.Exit(exitError)
}
