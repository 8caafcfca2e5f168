// SPDX-License-Identifier: Apache-2.0

// Command pergola runs Gardener landscapes from Git. Each file holds one subcommand and only wires
// the packages that implement it.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
	_ "time/tzdata" // The image has no time zones; windows of syncs name them.

	"github.com/spf13/cobra"
	"k8s.io/utils/clock"

	"github.com/pergola-dev/pergola/commands"
	"github.com/pergola-dev/pergola/landscapes"
)

// Exit codes of every command.
const (
	exitOK          = 0
	exitFinding     = 1
	exitUsage       = 2
	exitInterrupted = 130
	// exitOutputClosed is the exit code of a program that SIGPIPE ends. There is no verdict, and
	// pipelines that ask for one (pipefail) fail.
	exitOutputClosed = 141
)

// exitError carries an exit code after the outcome was printed.
type exitError struct{ code int }

func (e exitError) Error() string { return fmt.Sprintf("exit code %d", e.code) }

// errFinding ends a command with a finding: invalid, different or unhealthy.
var errFinding = exitError{exitFinding}

func main() {
	root := newRoot()
	args, err := withRole(root, os.Args[0], os.Args[1:])
	if err != nil {
		printFailure(root, os.Args[1:], "Error: "+err.Error(), err)
		os.Exit(exitUsage)
	}
	os.Exit(runProgram(root, args))
}

// runProgram runs a command line and handles the signals of a terminal or a supervisor.
func runProgram(root *cobra.Command, args []string) int {
	if os.Getenv("GOGC") == "" {
		// This saves memory for hardly any time: CI machines are small and large landscapes are
		// not.
		debug.SetGCPercent(70)
	}
	signals := make(chan os.Signal, 3)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	interruptOnClosedOutput(root, signals)
	return runInterruptible(clock.RealClock{}, signals, os.Stderr, func(ctx context.Context) int { return run(ctx, root, args) })
}

// executeCommand runs the command. A file that disappears while it is read
// (landscapes.UnreadableFileError) is an ordinary error. Other panics are bugs of Pergola and end
// the process with their stack.
func executeCommand(ctx context.Context, root *cobra.Command) (cmd *cobra.Command, err error) {
	defer func() {
		p := recover()
		if cause, ok := p.(error); ok && errors.As(cause, new(*landscapes.UnreadableFileError)) {
			cmd, err = root, cause
		} else if p != nil {
			panic(p)
		}
	}()
	return root.ExecuteContextC(ctx)
}

func run(ctx context.Context, root *cobra.Command, args []string) int {
	root.SetArgs(args)
	ctx = withValidationStores(ctx)
	cmd, err := executeCommand(ctx, root)
	var code exitError
	var found commands.Finding
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &code):
		return code.code
	case errors.As(err, new(outputClosedError)):
		return exitOutputClosed // the reader has seen enough (| head)
	case errors.Is(context.Cause(ctx), errOutputClosed) && cmd.Annotations[annotationReadOnly] != "":
		return exitOutputClosed
	case ctx.Err() != nil && errors.Is(err, context.Canceled):
		printFailure(cmd, args, "Interrupted.", errors.New("interrupted"))
		return exitInterrupted
	case errors.As(err, &found) && !isUnavailable(err):
		printFailure(cmd, args, "Error: "+err.Error(), err)
		return exitFinding
	}
	printFailure(cmd, args, "Error: "+err.Error(), err)
	return exitUsage
}
