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

func shell(t *testing.T, script string) (Spec, string) {
	t.Helper()
	folder := t.TempDir()
	return Spec{Binary: "/bin/sh", Args: []string{"-c", script}, Log: filepath.Join(folder, "log")}, filepath.Join(folder, "run", "sh.pid")
}

func TestStartAndStop(t *testing.T) {
	spec, path := shell(t, "echo started; exec sleep 600")
	record, err := Start(spec, path)
	require.NoError(t, err)
	assert.True(t, record.Alive())
	read, err := ReadRecord(path)
	require.NoError(t, err)
	assert.Equal(t, record, read)
	assert.Equal(t, spec.Digest(), read.Digest)

	require.NoError(t, Stop(t.Context(), path, 5*time.Second))
	assert.False(t, record.Alive())
	assert.NoFileExists(t, path)
	require.NoError(t, Stop(t.Context(), path, time.Second), "stopping twice is harmless")
}

func TestStopKillsWhatDoesNotListen(t *testing.T) {
	spec, path := shell(t, "trap '' TERM; echo deaf; while :; do sleep 1; done")
	record, err := Start(spec, path)
	require.NoError(t, err)
	require.Eventually(t, func() bool { return len(Tail(spec.Log, 1)) == 1 }, 5*time.Second, time.Millisecond)
	require.NoError(t, Stop(t.Context(), path, 50*time.Millisecond))
	assert.False(t, record.Alive())

	record, err = Start(spec, path)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.NoError(t, Stop(ctx, path, time.Hour), "who is in a hurry kills at once")
	assert.False(t, record.Alive())
}

func TestReusedIDIsLeftAlone(t *testing.T) {
	spec, path := shell(t, "exec sleep 600")
	record, err := Start(spec, path)
	require.NoError(t, err)
	// The id of another process, according to the record.
	stranger := *record
	stranger.Born = "another-boot/1"
	require.NoError(t, stranger.write(path))
	assert.False(t, stranger.Alive())
	require.NoError(t, Stop(t.Context(), path, time.Second))
	assert.True(t, record.Alive(), "not our process, not our business")
	require.NoError(t, record.write(path))
	require.NoError(t, Stop(t.Context(), path, time.Second))
}

func TestDeadProcess(t *testing.T) {
	spec, path := shell(t, "echo one; echo two >&2; exit 3")
	record, err := Start(spec, path)
	require.NoError(t, err)
	require.Eventually(t, func() bool { return !record.Alive() }, 5*time.Second, time.Millisecond)
	assert.Equal(t, []string{"one", "two"}, Tail(spec.Log, 10))

	_, err = Start(spec, path)
	require.NoError(t, err)
	previous, err := os.ReadFile(spec.Log + ".1")
	require.NoError(t, err)
	assert.Equal(t, "one\ntwo\n", string(previous), "the log of the start before is kept")
}

func TestNothingIsInherited(t *testing.T) {
	t.Setenv("HTTPS_PROXY", "http://proxy.example:3128")
	spec, path := shell(t, "env; read line || echo no input")
	record, err := Start(spec, path)
	require.NoError(t, err)
	require.Eventually(t, func() bool { return !record.Alive() }, 5*time.Second, time.Millisecond)
	text := strings.Join(Tail(spec.Log, 100), "\n")
	assert.NotContains(t, text, "PROXY")
	assert.Contains(t, text, "no input")
}

func TestDigest(t *testing.T) {
	spec := Spec{Binary: "/a/b", Args: []string{"x"}}
	other := spec
	other.Binary = "/c/b"
	assert.NotEqual(t, spec.Digest(), other.Digest())
	spec.AnyBinary, other.AnyBinary = true, true
	assert.Equal(t, spec.Digest(), other.Digest())
	other.Args = []string{"y"}
	assert.NotEqual(t, spec.Digest(), other.Digest())
}

func TestTail(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	assert.Nil(t, Tail(path, 3), "no file")
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	assert.Nil(t, Tail(path, 3), "empty")
	long := strings.Repeat("x", 3000)
	lines := make([]string, 20)
	for i := range lines {
		lines[i] = long
	}
	require.NoError(t, os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\nlast\n"), 0o600))
	got := Tail(path, 3)
	assert.Equal(t, []string{long, long, "last"}, got)
	for _, line := range Tail(path, 100) {
		assert.True(t, line == long || line == "last", "no line is cut off")
	}
}
