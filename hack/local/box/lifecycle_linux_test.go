// SPDX-License-Identifier: Apache-2.0

package box

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// newNetwork creates a network namespace that exists until the test ends, and returns its path.
func newNetwork(t *testing.T) string {
	t.Helper()
	done, path, failed := make(chan struct{}), make(chan string, 1), make(chan error, 1)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			failed <- err
			return
		}
		path <- "/proc/" + strconv.Itoa(os.Getpid()) + "/task/" + strconv.Itoa(unix.Gettid()) + "/ns/net"
		<-done
	}()
	t.Cleanup(func() { close(done) })
	select {
	case err := <-failed:
		require.NoError(t, err)
		return ""
	case found := <-path:
		return found
	}
}

// startWithLines starts a box and returns a scanner of its output lines.
func startWithLines(t *testing.T, spec Spec) (*Process, *bufio.Scanner) {
	t.Helper()
	read, write, err := os.Pipe()
	require.NoError(t, err)
	t.Cleanup(func() { _ = read.Close() })
	spec.Stdout = write
	process := startBox(t, spec)
	require.NoError(t, write.Close())
	require.NoError(t, read.SetReadDeadline(time.Now().Add(testTimeout)))
	return process, bufio.NewScanner(read)
}

func requireLine(t *testing.T, scanner *bufio.Scanner, want string) {
	t.Helper()
	require.True(t, scanner.Scan(), "no line, but %v", scanner.Err())
	require.Equal(t, want, scanner.Text())
}

func TestSignals(t *testing.T) {
	for _, init := range []bool{false, true} {
		spec, _ := testProgramSpec(t, "term")
		spec.Init = init
		process, out := startWithLines(t, spec)
		requireLine(t, out, "waiting")
		require.NoError(t, process.Signal(syscall.SIGTERM))
		requireLine(t, out, "terminated")
		assert.Equal(t, Exit{Code: 7}, awaitExit(t, process))
		err := process.Signal(syscall.SIGTERM)
		require.ErrorIs(t, err, ErrEnded)
		require.EqualError(t, err, `sending terminated to "inside": the box has ended`)

		spec, _ = testProgramSpec(t, "hang")
		spec.Init = init
		process, out = startWithLines(t, spec)
		requireLine(t, out, "waiting")
		require.NoError(t, process.Signal(syscall.SIGKILL))
		assert.Equal(t, Exit{Code: 137, Signal: syscall.SIGKILL}, awaitExit(t, process))
		process.Kill()
	}
}

func TestGrandchildrenEndWithTheBox(t *testing.T) {
	for _, init := range []bool{false, true} {
		spec, _ := testProgramSpec(t, "spawn")
		spec.Init = init
		process, out := startWithLines(t, spec)
		got := map[string]bool{}
		for range 2 {
			require.True(t, out.Scan())
			got[out.Text()] = true
		}
		require.Equal(t, map[string]bool{"spawned": true, "waiting": true}, got, "two processes, both with the pipe")
		process.Kill()
		assert.False(t, out.Scan())
		require.NoError(t, out.Err(), "the end comes when nobody has the pipe any more")
		assert.Equal(t, 137, awaitExit(t, process).Code)
	}
}

func TestInitCollectsOrphans(t *testing.T) {
	spec, _ := testProgramSpec(t, "orphans")
	spec.Init = true
	out, _ := runOutput(t, spec)
	assert.Equal(t, "collected\n", out)
}

func TestStreams(t *testing.T) {
	for _, init := range []bool{false, true} {
		spec, _ := testProgramSpec(t, "copy")
		spec.Init = init
		long := strings.Repeat("0123456789", 100_000)
		spec.Stdin = strings.NewReader(long)
		out, _ := runOutput(t, spec)
		assert.True(t, out == long, "all of it, and no more")
	}
	spec, _ := testProgramSpec(t, "copy")
	out, exit := runOutput(t, spec)
	assert.Empty(t, out)
	assert.Equal(t, Exit{}, exit, "nothing on standard input")

	spec, together := testProgramSpec(t, "both")
	_, _ = runOutput(t, spec)
	assert.Equal(t, "out\nerr\n", together.String())

	spec, _ = testProgramSpec(t, "both")
	var stdout, stderr strings.Builder
	spec.Stdout, spec.Stderr = &stdout, &stderr
	_, _ = runOutput(t, spec)
	assert.Equal(t, "out\n", stdout.String())
	assert.Equal(t, "err\n", stderr.String())

	spec, _ = testProgramSpec(t, "exit", "3")
	spec.Stdin, _ = io.Pipe() // never receives data
	_, exit = runOutput(t, spec)
	assert.Equal(t, 3, exit.Code)
}

// uncomparableWriter is a Writer type that is not comparable.
type uncomparableWriter []*strings.Builder

func (p uncomparableWriter) Write(data []byte) (int, error) { return p[0].Write(data) }

func TestUncomparableStreams(t *testing.T) {
	spec, _ := testProgramSpec(t, "both")
	stdout, stderr := uncomparableWriter{{}}, uncomparableWriter{{}}
	spec.Stdout, spec.Stderr = stdout, stderr
	_, exit := runOutput(t, spec)
	assert.Equal(t, Exit{}, exit)
	assert.Equal(t, "out\n", stdout[0].String())
	assert.Equal(t, "err\n", stderr[0].String())
}

// failingWriter fails all writes.
type failingWriter struct{ writeCount int }

func (d *failingWriter) Write([]byte) (int, error) {
	d.writeCount++
	return 0, errors.New("no space left on device")
}

func TestFullDiskDoesNotEndTheCommand(t *testing.T) {
	spec, _ := testProgramSpec(t, "chatter")
	disk := &failingWriter{}
	spec.Stdout = disk
	assert.Equal(t, Exit{}, awaitExit(t, startBox(t, spec)))
	assert.Greater(t, disk.writeCount, 1)
}

func TestConcurrentWait(t *testing.T) {
	spec, _ := testProgramSpec(t, "term")
	process, out := startWithLines(t, spec)
	requireLine(t, out, "waiting")
	var waiting sync.WaitGroup
	for range 10 {
		waiting.Go(func() { assert.Equal(t, Exit{Code: 7}, process.Wait()) })
	}
	require.NoError(t, process.Signal(syscall.SIGTERM))
	waiting.Wait()
}

func TestExec(t *testing.T) {
	spec, _ := testProgramSpec(t, "hang")
	spec.Hostname, spec.Dir, spec.Tmpfs = "pod-0", "/work", []string{"/tmp"}
	spec.Env = append(spec.Env, "OF=box")
	process := startBox(t, spec)
	run := func(command Command) (string, Exit) {
		t.Helper()
		var out strings.Builder
		command.Stdout, command.Stderr = &out, &out
		exit, err := process.Exec(t.Context(), command)
		require.NoError(t, err)
		return out.String(), exit
	}

	out, exit := run(Command{Args: []string{"inside", "about"}})
	assert.Equal(t, Exit{}, exit)
	for _, line := range []string{"hostname pod-0\n", "dir /work\n", "NoNewPrivs: 1\n", "SigBlk: 0000000000000000\n", `env ["PATH=/sbin:/bin" "OF=box"]` + "\n", "uid 0\n"} {
		assert.Contains(t, out, line)
	}
	assert.NotContains(t, out, "session 1\n")
	out, _ = run(Command{Args: []string{"/bin/inside", "about"}, Env: []string{"OF=exec"}, Dir: "/tmp"})
	assert.Contains(t, out, `env ["OF=exec"]`+"\n")
	assert.Contains(t, out, "dir /tmp\n")

	out, _ = run(Command{Args: []string{"inside", "ls", "/"}})
	assert.Equal(t, "bin\ndev\nproc\ntmp\nwork\n", out)
	out, _ = run(Command{Args: []string{"inside", "processes"}})
	assert.Equal(t, "2\n", out)
	_, exit = run(Command{Args: []string{"inside", "exit", "42"}})
	assert.Equal(t, Exit{Code: 42}, exit)
	_, exit = run(Command{Args: []string{"inside", "raise", "9"}})
	assert.Equal(t, Exit{Code: 137, Signal: syscall.SIGKILL}, exit)
	out, _ = run(Command{Args: []string{"inside", "copy"}, Stdin: strings.NewReader("input")})
	assert.Equal(t, "input", out)

	_, err := process.Exec(t.Context(), Command{Args: []string{"/bin/missing"}})
	require.EqualError(t, err, `executing "/bin/missing" in the box of "inside": no such file or directory`)
	_, err = process.Exec(t.Context(), Command{})
	require.EqualError(t, err, `executing "" in the box of "inside": no command given`)
	_, err = process.Exec(t.Context(), Command{Args: []string{"inside"}, Dir: "/missing"})
	require.EqualError(t, err, `executing "inside" in the box of "inside": changing to the working directory: chdir /missing: no such file or directory`)
	_, err = process.Exec(t.Context(), Command{Args: []string{"inside", "pid"}, Terminal: true})
	require.ErrorIs(t, err, syscall.ENOTTY)
}

func TestExecWithTerminal(t *testing.T) {
	ours, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skip("no terminals here: ", err)
	}
	defer ours.Close()
	connection, err := ours.SyscallConn() // not Fd, which disables deadlines
	require.NoError(t, err)
	number := -1
	require.NoError(t, connection.Control(func(file uintptr) {
		if err = unix.IoctlSetPointerInt(int(file), unix.TIOCSPTLCK, 0); err == nil {
			number, err = openPeer(file)
		}
	}))
	if err != nil {
		t.Skip("no terminals here: ", err)
	}
	theirs := os.NewFile(uintptr(number), "terminal")
	defer theirs.Close()
	require.NoError(t, ours.SetDeadline(time.Now().Add(testTimeout)))

	spec, _ := testProgramSpec(t, "hang")
	process := startBox(t, spec)
	lines := bufio.NewReader(ours)
	for _, terminal := range []bool{false, true} {
		var executing sync.WaitGroup
		executing.Go(func() {
			exit, err := process.Exec(t.Context(), Command{Args: []string{"inside", "terminal"}, Terminal: terminal, Stdin: theirs, Stdout: theirs, Stderr: theirs})
			assert.NoError(t, err)
			assert.Zero(t, exit.Code)
		})
		line, err := lines.ReadString('\n')
		assert.NoError(t, err)
		assert.Equal(t, "has a controlling terminal: "+strconv.FormatBool(terminal)+"\r\n", line)
		_, err = ours.WriteString("\n")
		assert.NoError(t, err)
		executing.Wait()
		if terminal || t.Failed() {
			return // the terminal ended with the session
		}
		_, err = lines.ReadString('\n')
		require.NoError(t, err, "the echo")
	}
}

// openPeer opens the other side of a terminal without using its name.
func openPeer(file uintptr) (int, error) {
	number, _, errno := syscall.Syscall(unix.SYS_IOCTL, file, unix.TIOCGPTPEER, unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC)
	if errno != 0 {
		return -1, errno
	}
	return int(number), nil
}

func TestEndOfExec(t *testing.T) {
	spec, _ := testProgramSpec(t, "hang")
	process := startBox(t, spec)

	ctx, cancel := context.WithCancel(t.Context())
	read, write, err := os.Pipe()
	require.NoError(t, err)
	defer read.Close()
	require.NoError(t, read.SetReadDeadline(time.Now().Add(testTimeout)))
	go func() {
		_, err := process.Exec(ctx, Command{Args: []string{"inside", "spawn"}, Stdout: write})
		assert.ErrorIs(t, err, context.Canceled)
		assert.NoError(t, write.Close())
	}()
	lines := bufio.NewScanner(read)
	require.True(t, lines.Scan())
	require.True(t, lines.Scan(), "it and its child")
	cancel()
	assert.False(t, lines.Scan(), "both are gone")
	require.NoError(t, lines.Err())

	// A process that the command leaves behind holds the output open but does not block the caller.
	var out strings.Builder
	began := time.Now()
	exit, err := process.Exec(t.Context(), Command{Args: []string{"inside", "spawn", "leave"}, Stdout: &out})
	require.NoError(t, err)
	assert.Equal(t, Exit{}, exit)
	assert.Contains(t, out.String(), "spawned\n")
	assert.Less(t, time.Since(began), testTimeout)

	// When the box ends, all its processes end.
	result := make(chan Exit, 1)
	lastRead, lastWrite, err := os.Pipe()
	require.NoError(t, err)
	defer lastRead.Close()
	require.NoError(t, lastRead.SetReadDeadline(time.Now().Add(testTimeout)))
	go func() {
		exit, err := process.Exec(t.Context(), Command{Args: []string{"inside", "hang"}, Stdout: lastWrite})
		assert.NoError(t, err)
		assert.NoError(t, lastWrite.Close())
		result <- exit
	}()
	lines = bufio.NewScanner(lastRead)
	requireLine(t, lines, "waiting")
	process.Kill()
	awaitExit(t, process)
	assert.Equal(t, Exit{Code: 137, Signal: syscall.SIGKILL}, <-result)
	_, err = process.Exec(t.Context(), Command{Args: []string{"inside", "pid"}})
	require.ErrorIs(t, err, ErrEnded)
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = process.Exec(cancelled, Command{Args: []string{"inside", "pid"}})
	require.ErrorIs(t, err, context.Canceled)
}

func TestConcurrentBoxes(t *testing.T) {
	var all sync.WaitGroup
	for range 8 {
		spec, _ := testProgramSpec(t, "hang")
		process := startBox(t, spec)
		for range 4 {
			all.Go(func() {
				var out strings.Builder
				exit, err := process.Exec(t.Context(), Command{Args: []string{"inside", "copy"}, Stdin: strings.NewReader("input"), Stdout: &out})
				assert.NoError(t, err)
				assert.Equal(t, Exit{}, exit)
				assert.Equal(t, "input", out.String())
			})
		}
	}
	all.Wait()
}

func TestBoxLeavesNothing(t *testing.T) {
	spec, _ := testProgramSpec(t, "hang")
	before, goroutines := currentMounts(t), runtime.NumGoroutine()
	process, out := startWithLines(t, spec)
	requireLine(t, out, "waiting")
	assert.Equal(t, before, currentMounts(t), "mounts of a box are not those of the machine")
	entries, err := os.ReadDir(spec.Root)
	require.NoError(t, err)
	assert.Empty(t, entries)
	_, err = process.Exec(t.Context(), Command{Args: []string{"inside", "pid"}})
	require.NoError(t, err)
	process.Kill()
	awaitExit(t, process)
	assert.Equal(t, before, currentMounts(t))
	assert.False(t, isAlive(process.PID()))
	// Eventually would add goroutines of its own.
	for deadline := time.Now().Add(testTimeout); runtime.NumGoroutine() > goroutines && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond)
	}
	assert.LessOrEqual(t, runtime.NumGoroutine(), goroutines)
	require.NoError(t, os.Remove(spec.Root), "nothing holds it")
	require.NoError(t, os.Mkdir(spec.Root, 0o700))
}

func TestBoxEndsWithParent(t *testing.T) {
	for _, init := range []bool{false, true} {
		spec, _ := testProgramSpec(t, "hang")
		spec.Init = init
		text, err := json.Marshal(spec)
		require.NoError(t, err)
		runner := exec.Command("/proc/self/exe")
		runner.Env = append(os.Environ(), envRunner+"="+string(text))
		out, err := runner.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, runner.Start())
		lines := bufio.NewScanner(out)
		pid := 0
		for range 2 {
			require.True(t, lines.Scan())
			if lines.Text() != "waiting" {
				pid, err = strconv.Atoi(lines.Text())
				require.NoError(t, err)
			}
		}
		require.True(t, isAlive(pid))
		require.NoError(t, runner.Process.Kill())
		assert.False(t, lines.Scan(), "nobody has its standard output any more")
		_ = runner.Wait()
		require.Eventually(t, func() bool { return !isAlive(pid) }, testTimeout, time.Millisecond)
	}
}
