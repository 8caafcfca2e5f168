// SPDX-License-Identifier: Apache-2.0

package evaluation

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	serveArgument = "serve"
	envArgument   = "environment"
	idleArgument  = "parent"
)

// TestMain turns the test program into its own worker, and into a parent that can be killed.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case serveArgument:
			if err := Serve(os.Stdin, os.Stdout); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
			os.Exit(0)
		case envArgument:
			fmt.Fprintln(os.Stderr, strings.Join(os.Environ(), " "))
			os.Exit(1)
		case idleArgument:
			pool := NewPool(Limits{}, "", serveArgument)
			_, _ = pool.Evaluate(context.Background(), pkg(namespaceCUE))
			fmt.Println(pool.idle[0].cmd.Process.Pid)
			_, _ = pool.Evaluate(context.Background(), pkg(endlessCUE))
		}
	}
	os.Exit(m.Run())
}

const (
	namespaceCUE = `ns: {apiVersion: "v1", kind: "Namespace", metadata: name: "a"}`
	// endlessCUE takes minutes and little memory; greedyCUE takes memory fast.
	endlessCUE = "import \"list\"\n_l: list.Range(0, 3000, 1)\n_x: [for a in _l for b in _l for c in _l if a+b+c < 0 {a}]\n" + namespaceCUE + "\nns: metadata: labels: n: \"\\(len(_x))\"\n"
	greedyCUE  = "import \"list\"\nx: list.Range(0, 15000000, 1)\n"
)

func pkg(text string) Package { return Package{Files: []File{{Name: "a.cue", Data: []byte(text)}}} }

func newPool(t *testing.T, limits Limits) *Pool {
	t.Helper()
	pool := NewPool(limits, "", serveArgument)
	t.Cleanup(pool.Close)
	return pool
}

// TestPoolMatchesInProcess checks that Pool and InProcess agree for values of every kind.
func TestPoolMatchesInProcess(t *testing.T) {
	pool := newPool(t, Limits{})
	for _, text := range []string{
		namespaceCUE, "a: {", "x: 5", `o: {apiVersion: "v1", kind: "ConfigMap", x: [1, 1.0, 1.5, true, null, "a\n\u0000", {}, [], 9223372036854775807]}`,
	} {
		want, err := InProcess{}.Evaluate(t.Context(), pkg(text))
		require.NoError(t, err)
		got, err := pool.Evaluate(t.Context(), pkg(text))
		require.NoError(t, err)
		assert.Equal(t, fmt.Sprint(len(want.Objects)), fmt.Sprint(len(got.Objects)))
		assert.Equal(t, want.Violations, got.Violations)
		for i := range want.Objects {
			assert.Equal(t, describe(want.Objects[i]), describe(got.Objects[i]))
		}
	}
}

// describe formats a value so that absent and empty parts look the same.
func describe(v *Value) string {
	text := fmt.Sprintf("%s %d:%d:%d %q", v.Kind, v.File, v.Line, v.Column, v.Text)
	for _, item := range v.Items {
		text += " [" + describe(item) + "]"
	}
	for _, name := range slices.Sorted(maps.Keys(v.Fields)) {
		text += " " + name + "(" + describe(v.Fields[name]) + ")"
	}
	return text
}

func TestLimits(t *testing.T) {
	tests := map[string]struct {
		limits Limits
		text   string
		want   string
	}{
		"time":   {Limits{Timeout: 300 * time.Millisecond}, endlessCUE, "evaluating this took longer than 300ms: it was stopped"},
		"memory": {Limits{Memory: 256 << 20}, greedyCUE, "evaluating this needed more than 256 MiB of memory: it was stopped"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			pool := newPool(t, test.limits)
			result, err := pool.Evaluate(t.Context(), pkg(test.text))
			require.NoError(t, err)
			require.Len(t, result.Violations, 1)
			assert.Contains(t, result.Violations[0].String(), "a.cue:1:1: error: "+test.want)
			assert.Empty(t, pool.idle, "the worker is gone")
		})
	}
	pool := newPool(t, Limits{})
	result, err := pool.Evaluate(t.Context(), pkg(namespaceCUE))
	require.NoError(t, err)
	assert.Len(t, result.Objects, 1)
}

// TestCancelEndsTheWorker: it ends soon and leaves no process.
func TestCancelEndsTheWorker(t *testing.T) {
	pool := newPool(t, Limits{})
	_, err := pool.Evaluate(t.Context(), pkg(namespaceCUE))
	require.NoError(t, err)
	pid := pool.idle[0].cmd.Process.Pid
	ctx, cancel := context.WithCancel(t.Context())
	timer := time.AfterFunc(200*time.Millisecond, cancel)
	defer timer.Stop()
	started := time.Now()
	_, err = pool.Evaluate(ctx, pkg(endlessCUE))
	require.ErrorIs(t, err, context.Canceled)
	assert.Less(t, time.Since(started), 700*time.Millisecond)
	assert.ErrorIs(t, syscall.Kill(pid, 0), syscall.ESRCH)
}

func TestWorkersAreUsedAgainAndRecycled(t *testing.T) {
	pool := newPool(t, Limits{})
	first := 0
	for range 3 {
		_, err := pool.Evaluate(t.Context(), pkg(namespaceCUE))
		require.NoError(t, err)
		require.Len(t, pool.idle, 1)
		if first == 0 {
			first = pool.idle[0].cmd.Process.Pid
		}
		assert.Equal(t, first, pool.idle[0].cmd.Process.Pid)
	}
	pool.idle[0].packages = maxPackagesPerWorker - 1
	_, err := pool.Evaluate(t.Context(), pkg(namespaceCUE))
	require.NoError(t, err)
	assert.Empty(t, pool.idle)
	assert.ErrorIs(t, syscall.Kill(first, 0), syscall.ESRCH)

	// A worker that died while idle is replaced.
	_, err = pool.Evaluate(t.Context(), pkg(namespaceCUE))
	require.NoError(t, err)
	pool.idle[0].kill()
	<-pool.idle[0].done
	result, err := pool.Evaluate(t.Context(), pkg(namespaceCUE))
	require.NoError(t, err)
	assert.Len(t, result.Objects, 1)
}

// TestWorkersHaveNoEnvironment: workers get neither keys nor clusters nor proxies.
func TestWorkersHaveNoEnvironment(t *testing.T) {
	for _, name := range []string{"KUBECONFIG", "SOPS_AGE_KEY", "HTTPS_PROXY"} {
		t.Setenv(name, "secret-of-the-parent")
	}
	pool := NewPool(Limits{}, "", envArgument)
	defer pool.Close()
	_, err := pool.Evaluate(t.Context(), pkg(namespaceCUE))
	require.ErrorContains(t, err, "GOMAXPROCS=2")
	assert.NotContains(t, err.Error(), "secret-of-the-parent")
	assert.NotContains(t, err.Error(), "HOME=")
}

func TestMissingProgramIsAnError(t *testing.T) {
	_, err := NewPool(Limits{}, filepath.Join(t.TempDir(), "nope")).Evaluate(t.Context(), pkg(namespaceCUE))
	require.ErrorContains(t, err, "starting a process to evaluate CUE: ")
}

// TestWorkersEndWithTheirParent checks a parent that is killed during an evaluation.
func TestWorkersEndWithTheirParent(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux ends the children of a process that is killed")
	}
	parent, out := startParent(t)
	line := make([]byte, 32)
	n, err := out.Read(line)
	require.NoError(t, err)
	pid, err := strconv.Atoi(strings.TrimSpace(string(line[:n])))
	require.NoError(t, err)
	require.NoError(t, syscall.Kill(pid, 0))
	require.NoError(t, parent.Kill())
	_, err = parent.Wait()
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		state, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		return err != nil || strings.Contains(string(state), ") Z ")
	}, 5*time.Second, 10*time.Millisecond)
}

func startParent(t *testing.T) (*os.Process, *os.File) {
	t.Helper()
	out, childOut, err := os.Pipe()
	require.NoError(t, err)
	program, err := currentProgram()
	require.NoError(t, err)
	process, err := os.StartProcess(program, []string{program, idleArgument}, &os.ProcAttr{Files: []*os.File{nil, childOut, os.Stderr}})
	require.NoError(t, err)
	require.NoError(t, childOut.Close())
	t.Cleanup(func() { _, _ = process.Kill(), out.Close() })
	return process, out
}
