// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"k8s.io/utils/clock"
)

// closedOutput is an output that the reader has closed.
type closedOutput struct{}

func (closedOutput) Write([]byte) (int, error) {
	return 0, fmt.Errorf("write /dev/stdout: %w", syscall.EPIPE)
}

// TestClosedOutputIsNotAFailure: a closed output is not a failure, but a connection that
// breaks with the same error number is.
func TestClosedOutputIsNotAFailure(t *testing.T) {
	for name, test := range map[string]struct {
		talk   func(cmd *cobra.Command) error
		code   int
		stderr string
		told   int
	}{
		"output": {func(cmd *cobra.Command) error {
			_, err := fmt.Fprintln(cmd.OutOrStdout(), "more")
			return fmt.Errorf("printing: %w", err)
		}, exitOutputClosed, "", 1},
		"connection": {func(*cobra.Command) error { return fmt.Errorf("write tcp: %w", syscall.EPIPE) }, exitUsage, "Error: write tcp: broken pipe\n", 0},
	} {
		t.Run(name, func(t *testing.T) {
			var stderr bytes.Buffer
			told := 0
			root := newRoot()
			root.AddCommand(&cobra.Command{Use: "talk", RunE: func(cmd *cobra.Command, _ []string) error { return test.talk(cmd) }})
			root.SetOut(pipe{closedOutput{}, func() { told++ }})
			root.SetErr(&stderr)
			assert.Equal(t, test.code, run(context.Background(), root, []string{"talk"}))
			assert.Equal(t, test.stderr, stderr.String())
			assert.Equal(t, test.told, told)
		})
	}
}

// TestClosedOutputExitCodes: a closed output does not count as an interruption. A command that
// changes something reports that it was cut short.
func TestClosedOutputExitCodes(t *testing.T) {
	for name, test := range map[string]struct {
		annotations map[string]string
		err         error
		cause       error
		code        int
		stderr      string
	}{
		"only prints, and ends":       {map[string]string{annotationReadOnly: "true"}, nil, errOutputClosed, exitOK, ""},
		"only prints, and is stopped": {map[string]string{annotationReadOnly: "true"}, fmt.Errorf("render: %w", context.Canceled), errOutputClosed, exitOutputClosed, ""},
		"only prints, and fails":      {map[string]string{annotationReadOnly: "true"}, errors.New("evaluation stopped"), errOutputClosed, exitOutputClosed, ""},
		"changes, and is stopped":     {nil, context.Canceled, errOutputClosed, exitInterrupted, "Interrupted.\n"},
		"changes, and finds":          {nil, errFinding, errOutputClosed, exitFinding, ""},
		"only prints, interrupted":    {map[string]string{annotationReadOnly: "true"}, context.Canceled, nil, exitInterrupted, "Interrupted.\n"},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			cancel(test.cause)
			var stderr bytes.Buffer
			root := newRoot()
			root.AddCommand(&cobra.Command{Use: "talk", Annotations: test.annotations, RunE: func(*cobra.Command, []string) error { return test.err }})
			root.SetErr(&stderr)
			assert.Equal(t, test.code, run(ctx, root, []string{"talk"}))
			assert.Equal(t, test.stderr, stderr.String())
		})
	}
	for signal, codes := range map[os.Signal][]int{syscall.SIGPIPE: {exitOK, exitFinding, exitUsage}, os.Interrupt: {exitOK, exitInterrupted, exitInterrupted}} {
		for code, want := range codes {
			signals := make(chan os.Signal, 1)
			signals <- signal
			got := runInterruptible(clock.RealClock{}, signals, io.Discard, func(ctx context.Context) int {
				<-ctx.Done()
				assert.Equal(t, signal == syscall.SIGPIPE, errors.Is(context.Cause(ctx), errOutputClosed))
				return code
			})
			assert.Equal(t, want, got, "%s, %d", signal, code)
		}
	}
}
