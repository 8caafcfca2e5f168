// SPDX-License-Identifier: Apache-2.0

package hold

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestRun(t *testing.T) {
	holder, dir := startTestHolder(t)
	input := filepath.Join(dir, "input")
	require.NoError(t, os.WriteFile(input, []byte("hello"), 0o600))
	file, err := os.Open(input)
	require.NoError(t, err)
	defer file.Close()
	here, err := os.Getwd()
	require.NoError(t, err)
	long := strings.Repeat("x", 100<<10)
	for name, test := range map[string]struct {
		command Command
		want    string
		code    int
	}{
		"exit code":     {shellCommand("echo out; echo err >&2; exit 3"), "out\nerr\n", 3},
		"killed":        {shellCommand("kill -9 $$"), "", 137},
		"no input":      {shellCommand("cat"), "", 0},
		"input":         {Command{Path: "/bin/cat", Stdin: file}, "hello", 0},
		"environment":   {Command{Path: "/usr/bin/env", Env: []string{"A=b"}}, "A=b\n", 0},
		"none":          {Command{Path: "/usr/bin/env"}, "", 0},
		"long":          {Command{Path: "/usr/bin/env", Env: []string{"A=" + long, "B=" + long, "C=" + long, "D=" + long}}, "A=" + long + "\nB=" + long + "\nC=" + long + "\nD=" + long + "\n", 0},
		"folder":        {Command{Path: "/bin/pwd", Dir: dir}, dir + "\n", 0},
		"caller's":      {Command{Path: "/bin/pwd"}, here + "\n", 0},
		"no more files": {shellCommand("ls -C -w 80 /proc/$$/fd; exec 3</dev/null || exit 1"), "0  1  2\n", 0},
	} {
		t.Run(name, func(t *testing.T) {
			said, code := runOutput(t, holder, test.command)
			assert.Equal(t, test.want, said)
			assert.Equal(t, test.code, code)
		})
	}
	_, err = holder.Run(t.Context(), Command{Path: "/no/such"})
	assert.EqualError(t, err, "running /no/such: starting /no/such: no such file or directory")
}

func TestRunIsInterrupted(t *testing.T) {
	holder, dir := startTestHolder(t)
	for name, test := range map[string]struct {
		script string
		grace  time.Duration
		code   int
	}{
		"listens": {"trap 'exit 7' INT; touch %s; while :; do sleep 0.01; done", testTimeout, 7},
		"deaf":    {"trap '' INT; touch %s; while :; do sleep 0.01; done", 50 * time.Millisecond, 137},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			started := filepath.Join(dir, name)
			go func() {
				defer cancel()
				assert.Eventually(t, func() bool { _, err := os.Stat(started); return err == nil }, testTimeout, time.Millisecond)
			}()
			command := shellCommand(strings.ReplaceAll(test.script, "%s", started))
			command.Grace = test.grace
			code, err := holder.Run(ctx, command)
			require.NoError(t, err)
			assert.Equal(t, test.code, code)
		})
	}
}

func TestCommandEndsWithCaller(t *testing.T) {
	holder, dir := startTestHolder(t)
	mark, detached := uniqueSleep(), uniqueSleep()
	caller := exec.Command(testExecutable(t), dir, "setsid sleep "+detached+" & sleep "+mark)
	caller.Env = []string{"HOLD_PART=run"}
	require.NoError(t, caller.Start())
	require.Eventually(t, func() bool { return hasProcess(t, mark) && hasProcess(t, detached) }, testTimeout, time.Millisecond)
	require.NoError(t, caller.Process.Kill())
	_ = caller.Wait()
	require.Eventually(t, func() bool { return !hasProcess(t, mark) }, testTimeout, time.Millisecond)
	assert.True(t, hasProcess(t, detached))
	require.NoError(t, holder.Stop(t.Context()))
	assert.False(t, hasProcess(t, detached))
}

func TestRunEndsWithTheHolder(t *testing.T) {
	holder, dir := startTestHolder(t)
	ended := make(chan error, 1)
	go func() {
		_, err := holder.Run(t.Context(), shellCommand("touch "+dir+"/started; exec sleep 600"))
		ended <- err
	}()
	require.Eventually(t, func() bool { _, err := os.Stat(dir + "/started"); return err == nil }, testTimeout, time.Millisecond)
	require.NoError(t, holder.Stop(t.Context()))
	select {
	case err := <-ended:
		// The end of the command by SIGTERM may be reported before the holder's.
		if err != nil {
			assert.ErrorIs(t, err, errEnded)
		}
	case <-time.After(testTimeout):
		t.Fatal("Run does not return")
	}
}
