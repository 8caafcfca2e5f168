// SPDX-License-Identifier: Apache-2.0

package process

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func shellSpec(t *testing.T, script string) (Spec, string) {
	t.Helper()
	folder := t.TempDir()
	return Spec{Binary: "/bin/sh", Args: []string{"-c", script}, Log: filepath.Join(folder, "log")}, filepath.Join(folder, "run", "sh.pid")
}

func TestStartAndStop(t *testing.T) {
	spec, path := shellSpec(t, "echo started; exec sleep 600")
	record, err := Start(spec, path)
	require.NoError(t, err)
	assert.True(t, record.IsAlive())
	read, err := ReadRecord(path)
	require.NoError(t, err)
	assert.Equal(t, record, read)
	assert.Equal(t, spec.Digest(), read.Digest)

	require.NoError(t, Stop(t.Context(), path, 5*time.Second))
	assert.False(t, record.IsAlive())
	assert.NoFileExists(t, path)
	require.NoError(t, Stop(t.Context(), path, time.Second), "stopping twice is harmless")
}

func TestStopKillsAfterGrace(t *testing.T) {
	spec, path := shellSpec(t, "trap '' TERM; echo deaf; while :; do sleep 1; done")
	record, err := Start(spec, path)
	require.NoError(t, err)
	require.Eventually(t, func() bool { return len(ReadTail(spec.Log, 1)) == 1 }, 5*time.Second, time.Millisecond)
	require.NoError(t, Stop(t.Context(), path, 50*time.Millisecond))
	assert.False(t, record.IsAlive())

	record, err = Start(spec, path)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.NoError(t, Stop(ctx, path, time.Hour), "who is in a hurry kills at once")
	assert.False(t, record.IsAlive())
}

func TestStopIgnoresReusedID(t *testing.T) {
	spec, path := shellSpec(t, "exec sleep 600")
	record, err := Start(spec, path)
	require.NoError(t, err)
	// The id of another process, according to the record.
	stranger := *record
	stranger.StartID = "another-boot/1"
	require.NoError(t, stranger.write(path))
	assert.False(t, stranger.IsAlive())
	require.NoError(t, Stop(t.Context(), path, time.Second))
	assert.True(t, record.IsAlive(), "not our process, not our business")
	require.NoError(t, record.write(path))
	require.NoError(t, Stop(t.Context(), path, time.Second))
}

func TestDeadProcess(t *testing.T) {
	spec, path := shellSpec(t, "echo one; echo two >&2; exit 3")
	record, err := Start(spec, path)
	require.NoError(t, err)
	require.Eventually(t, func() bool { return !record.IsAlive() }, 5*time.Second, time.Millisecond)
	assert.Equal(t, []string{"one", "two"}, ReadTail(spec.Log, 10))

	_, err = Start(spec, path)
	require.NoError(t, err)
	previous, err := os.ReadFile(spec.Log + ".1")
	require.NoError(t, err)
	assert.Equal(t, "one\ntwo\n", string(previous), "the log of the start before is kept")
}

func TestProcessInheritsNothing(t *testing.T) {
	t.Setenv("HTTPS_PROXY", "http://proxy.example:3128")
	spec, path := shellSpec(t, "env; read line || echo no input")
	record, err := Start(spec, path)
	require.NoError(t, err)
	require.Eventually(t, func() bool { return !record.IsAlive() }, 5*time.Second, time.Millisecond)
	text := strings.Join(ReadTail(spec.Log, 100), "\n")
	assert.NotContains(t, text, "PROXY")
	assert.Contains(t, text, "no input")
}

func TestDigest(t *testing.T) {
	spec := Spec{Binary: "/a/b", Args: []string{"x"}}
	other := spec
	other.Binary = "/c/b"
	assert.NotEqual(t, spec.Digest(), other.Digest())
	spec.IgnoreBinary, other.IgnoreBinary = true, true
	assert.Equal(t, spec.Digest(), other.Digest())
	other.Args = []string{"y"}
	assert.NotEqual(t, spec.Digest(), other.Digest())
}

func TestReadTail(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	assert.Nil(t, ReadTail(path, 3), "no file")
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	assert.Nil(t, ReadTail(path, 3), "empty")
	long := strings.Repeat("x", 3000)
	lines := make([]string, 20)
	for i := range lines {
		lines[i] = long
	}
	require.NoError(t, os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\nlast\n"), 0o600))
	got := ReadTail(path, 3)
	assert.Equal(t, []string{long, long, "last"}, got)
	for _, line := range ReadTail(path, 100) {
		assert.True(t, line == long || line == "last", "no line is cut off")
	}
}
