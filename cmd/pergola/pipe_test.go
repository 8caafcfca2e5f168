package main

import (
	"bytes"
	"context"
	"fmt"
	"syscall"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
)

// broken is the output of a command of which nobody reads more.
type broken struct{}

func (broken) Write([]byte) (int, error) {
	return 0, fmt.Errorf("write /dev/stdout: %w", syscall.EPIPE)
}

// Output that nobody reads any more is no failure; a connection that breaks with the same error number is one.
func TestOutputThatIsNotReadIsNoFailure(t *testing.T) {
	for name, test := range map[string]struct {
		talk   func(cmd *cobra.Command) error
		code   int
		stderr string
		told   int
	}{
		"output": {func(cmd *cobra.Command) error {
			_, err := fmt.Fprintln(cmd.OutOrStdout(), "more")
			return fmt.Errorf("printing: %w", err)
		}, exitOK, "", 1},
		"connection": {func(*cobra.Command) error { return fmt.Errorf("write tcp: %w", syscall.EPIPE) }, exitUsage, "Error: write tcp: broken pipe\n", 0},
	} {
		t.Run(name, func(t *testing.T) {
			var stderr bytes.Buffer
			told := 0
			root := newRoot()
			root.AddCommand(&cobra.Command{Use: "talk", RunE: func(cmd *cobra.Command, _ []string) error { return test.talk(cmd) }})
			root.SetOut(pipe{broken{}, func() { told++ }})
			root.SetErr(&stderr)
			assert.Equal(t, test.code, run(context.Background(), root, []string{"talk"}))
			assert.Equal(t, test.stderr, stderr.String())
			assert.Equal(t, test.told, told)
		})
	}
}
