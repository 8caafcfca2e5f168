// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/pergola-dev/pergola/commands"
	"github.com/pergola-dev/pergola/hack/childprocess"
)

// envInterruptReaction is the environment variable that turns this test binary into a program to
// interrupt; its value is a key of interruptReactions.
const envInterruptReaction = "PERGOLA_TEST_INTERRUPTED"

// interruptReactions maps names to commands that react to an interruption.
var interruptReactions = map[string]func(context.Context) error{
	"never ends": func(context.Context) error { select {} },
	"tidies up": func(ctx context.Context) error {
		<-ctx.Done()
		fmt.Println("tidied up")
		return commands.Finding{Err: errors.New("interrupted")}
	},
	"is done":       func(ctx context.Context) error { <-ctx.Done(); return nil },
	"ends by error": func(context.Context) error { return commands.Finding{Err: errors.New("found something")} },
}

// TestProgramToInterrupt is not a test but the program that TestInterrupt starts.
func TestProgramToInterrupt(t *testing.T) {
	command := interruptReactions[os.Getenv(envInterruptReaction)]
	if command == nil {
		return
	}
	root := newRoot()
	root.AddCommand(&cobra.Command{Use: "hang", RunE: func(cmd *cobra.Command, _ []string) error {
		fmt.Println("ready")
		return command(cmd.Context())
	}})
	os.Exit(runProgram(root, []string{"hang"}))
}

func TestInterrupt(t *testing.T) {
	for _, test := range []struct {
		does, stdout, stderr string
		signals, code        int
		least, most          time.Duration
	}{
		{does: "never ends", signals: 1, code: 130, stderr: "a step that cannot be stopped was still running", least: time.Second, most: 2 * time.Second},
		{does: "never ends", signals: 2, code: 130, stderr: "a step that cannot be stopped was still running", least: time.Second, most: 2 * time.Second},
		{does: "tidies up", signals: 1, code: 130, stdout: "tidied up\n", stderr: "Error: interrupted", most: time.Second},
		{does: "is done", signals: 1, code: 0, most: time.Second},
		{does: "ends by error", code: 1, stderr: "Error: found something", most: time.Minute},
	} {
		t.Run(fmt.Sprintf("%s, %d signals", test.does, test.signals), func(t *testing.T) {
			cmd := exec.Command(os.Args[0], "-test.run=^TestProgramToInterrupt$")
			temporary := t.TempDir()
			// otherwise -race adds a second
			cmd.Env = append(os.Environ(), envInterruptReaction+"="+test.does, "TMPDIR="+temporary, "GORACE=atexit_sleep_ms=0")
			var stderr bytes.Buffer
			cmd.Stderr = &stderr
			out, err := cmd.StdoutPipe()
			require.NoError(t, err)
			require.NoError(t, childprocess.Start(cmd))
			t.Cleanup(func() { _ = cmd.Process.Kill() })
			stdout := bufio.NewReader(out)
			line, err := stdout.ReadString('\n')
			require.NoError(t, err)
			require.Equal(t, "ready\n", line)
			started := time.Now()
			// two signals of one kind could be merged
			for _, s := range []os.Signal{os.Interrupt, syscall.SIGTERM}[:test.signals] {
				require.NoError(t, cmd.Process.Signal(s))
			}
			rest, err := stdout.ReadString(0)
			assert.Error(t, err, "the end of the output")
			_ = cmd.Wait()
			took := time.Since(started)
			left, err := os.ReadDir(temporary)
			require.NoError(t, err)
			assert.Empty(t, left, "temporary files")
			assert.Equal(t, test.code, cmd.ProcessState.ExitCode())
			assert.Equal(t, test.stdout, rest)
			assert.Contains(t, stderr.String(), test.stderr)
			if test.stderr == "" {
				assert.Empty(t, stderr.String())
			}
			assert.GreaterOrEqual(t, took, test.least)
			assert.Less(t, took, test.most)
		})
	}
}

// sinceClock is a clock that signals each call of Since.
type sinceClock struct {
	*testingclock.FakeClock
	sinceCalls chan struct{}
}

func (a sinceClock) Since(t time.Time) time.Duration {
	defer func() { a.sinceCalls <- struct{}{} }()
	return a.FakeClock.Since(t)
}

// TestInterruptedTwice: signals within a second are one interruption, as when make forwards a
// signal that the terminal sent to all.
func TestInterruptedTwice(t *testing.T) {
	for name, test := range map[string]struct {
		steps  []time.Duration // before each signal after the first
		end    time.Duration   // from the last signal
		stderr string
	}{
		"at once, then too late":   {[]time.Duration{0, 999 * time.Millisecond}, 801 * time.Millisecond, "the command ended after 1.8s"},
		"a second later":           {[]time.Duration{time.Second}, 0, "Interrupted twice: the command ended at once."},
		"twice, and once more":     {[]time.Duration{10 * time.Millisecond, 990 * time.Millisecond}, 0, "Interrupted twice: the command ended at once."},
		"once":                     {nil, shutdownTimeout, "the command ended after 1.8s"},
		"by the command in a loop": {[]time.Duration{100 * time.Millisecond, 100 * time.Millisecond, 100 * time.Millisecond}, 1500 * time.Millisecond, "the command ended after 1.8s"},
	} {
		t.Run(name, func(t *testing.T) {
			clock := sinceClock{testingclock.NewFakeClock(time.Now()), make(chan struct{}, 1)}
			signals, stop := make(chan os.Signal), make(chan struct{})
			defer close(stop)
			var stderr bytes.Buffer
			code, interrupted := make(chan int, 1), make(chan struct{})
			go func() {
				code <- runInterruptible(clock, signals, &stderr, func(ctx context.Context) int {
					<-ctx.Done()
					close(interrupted)
					<-stop
					return exitFinding
				})
			}()
			signals <- os.Interrupt
			<-interrupted // the timer is already running
			for i, step := range test.steps {
				assert.Empty(t, code, "not before signal %d", i+2)
				clock.Step(step)
				signals <- os.Interrupt
				<-clock.sinceCalls
			}
			clock.Step(test.end)
			select {
			case got := <-code:
				assert.Equal(t, exitInterrupted, got)
			case <-time.After(10 * time.Second):
				require.Fail(t, "it has not ended")
			}
			assert.Contains(t, stderr.String(), test.stderr)
		})
	}
}

// envCleanupFile is the environment variable with the file that a program writes after its output
// is closed.
const envCleanupFile = "PERGOLA_TEST_TIDIED"

// TestProgramThatIsNotRead is not a test but the program that TestClosedOutputWaitsForCleanup
// starts.
func TestProgramThatIsNotRead(t *testing.T) {
	if os.Getenv(envCleanupFile) == "" {
		return
	}
	root := newRoot()
	root.AddCommand(&cobra.Command{Use: "talk", RunE: func(cmd *cobra.Command, _ []string) error {
		for cmd.Context().Err() == nil {
			fmt.Fprintln(cmd.OutOrStdout(), "more")
			fmt.Fprintln(cmd.ErrOrStderr(), "more")
		}
		fmt.Fprintln(cmd.OutOrStdout(), "the end")
		return os.WriteFile(os.Getenv(envCleanupFile), []byte("tidied up"), 0o600)
	}})
	os.Exit(runProgram(root, []string{"talk"}))
}

// TestClosedOutputWaitsForCleanup: a command whose output is closed ends, but only after its
// cleanup.
func TestClosedOutputWaitsForCleanup(t *testing.T) {
	for _, stream := range []string{"stdout", "stderr", "both"} {
		t.Run(stream, func(t *testing.T) {
			left := filepath.Join(t.TempDir(), "left")
			cmd := exec.Command(os.Args[0], "-test.run=^TestProgramThatIsNotRead$")
			temporary := t.TempDir()
			cmd.Env = append(os.Environ(), envCleanupFile+"="+left, "TMPDIR="+temporary)
			reader, writer, err := os.Pipe()
			require.NoError(t, err)
			if stream != "stderr" {
				cmd.Stdout = writer
			}
			if stream != "stdout" {
				cmd.Stderr = writer
			}
			require.NoError(t, childprocess.Start(cmd))
			t.Cleanup(func() { _ = cmd.Process.Kill() })
			require.NoError(t, writer.Close())
			_, err = bufio.NewReader(reader).ReadString('\n')
			require.NoError(t, err)
			require.NoError(t, reader.Close())
			_ = cmd.Wait()
			files, err := os.ReadDir(temporary)
			require.NoError(t, err)
			assert.Empty(t, files, "temporary files")
			text, err := os.ReadFile(left)
			require.NoError(t, err)
			assert.Equal(t, "tidied up", string(text))
			assert.Less(t, cmd.ProcessState.ExitCode(), 131)
			assert.GreaterOrEqual(t, cmd.ProcessState.ExitCode(), 0, "no signal has ended it")
		})
	}
}
