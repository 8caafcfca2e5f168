// SPDX-License-Identifier: Apache-2.0

package hold

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const testTimeout = 30 * time.Second

// TestMain runs the program of the process that a test starts.
func TestMain(m *testing.M) {
	InitHolder()
	if part, found := testProcesses[os.Getenv("HOLD_PART")]; found {
		part(os.Args[1:])
		os.Exit(0)
	}
	os.Exit(m.Run())
}

var testProcesses = map[string]func([]string){
	"possible": func([]string) { fmt.Print(CheckSupport()) },
	"find": func(args []string) {
		holder, err := Find(args[0])
		fmt.Print(holder.PID(), " ", err)
	},
	// serve answers a connection with its input in upper case, once the client has closed its half.
	"serve": func(args []string) {
		listener, err := net.Listen("tcp", args[0])
		panicOnError(err)
		fmt.Println("ready")
		for {
			conn, err := listener.Accept()
			panicOnError(err)
			go func() {
				defer conn.Close()
				data, _ := io.ReadAll(conn)
				_, _ = conn.Write(append(bytes.ToUpper(data), args[1]...))
			}()
		}
	},
	// run runs a shell in the holder of a folder.
	"run": func(args []string) {
		holder, err := Find(args[0])
		panicOnError(err)
		_, err = holder.Run(context.Background(), shellCommand(args[1]))
		panicOnError(err)
	},
}

func panicOnError(err error) {
	if err != nil {
		panic(err)
	}
}

func requireNamespaces(t *testing.T) {
	t.Helper()
	if err := CheckSupport(); err != nil {
		t.Skip(err)
	}
}

func testExecutable(t *testing.T) string {
	t.Helper()
	path, err := os.Executable()
	require.NoError(t, err)
	return path
}

// startTestHolder starts a holder that ends with the test.
func startTestHolder(t *testing.T) (*Holder, string) {
	t.Helper()
	requireNamespaces(t)
	dir := t.TempDir()
	return startTestHolderAt(t, dir), dir
}

func startTestHolderAt(t *testing.T, dir string) *Holder {
	t.Helper()
	holder, err := Ensure(t.Context(), dir, testExecutable(t))
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
		defer cancel()
		assert.NoError(t, holder.Stop(ctx))
		assert.NoFileExists(t, filepath.Join(dir, socketFile))
		assert.NoFileExists(t, filepath.Join(dir, recordFile))
	})
	return holder
}

func shellCommand(script string) Command {
	return Command{Path: "/bin/sh", Args: []string{"-c", script}, Env: []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin"}}
}

// runOutput runs a command inside and returns its output and exit code.
func runOutput(t *testing.T, holder *Holder, command Command) (string, int) {
	t.Helper()
	read, write, err := os.Pipe()
	require.NoError(t, err)
	defer read.Close()
	command.Stdout, command.Stderr = write, write
	said := make(chan string)
	go func() {
		data, _ := io.ReadAll(read)
		said <- string(data)
	}()
	code, err := holder.Run(t.Context(), command)
	require.NoError(t, err)
	require.NoError(t, write.Close())
	return <-said, code
}

// hasProcess reports whether a process of the machine has this argument.
func hasProcess(t *testing.T, argument string) bool {
	t.Helper()
	return processWith(t, argument) > 0
}

// processWith returns the id of a process of the machine that has this argument, or 0.
func processWith(t *testing.T, argument string) int {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	require.NoError(t, err)
	for _, file := range files {
		if data, err := os.ReadFile(file); err == nil && bytes.Contains(data, []byte("\x00"+argument+"\x00")) {
			pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
			require.NoError(t, err)
			return pid
		}
	}
	return 0
}

// uniqueSleep returns a unique duration to sleep, which identifies a process.
func uniqueSleep() string { return fmt.Sprintf("600.%d", time.Now().UnixNano()) }

func TestEnsureAndStop(t *testing.T) {
	requireNamespaces(t)
	dir := filepath.Join(t.TempDir(), strings.Repeat("long/", 40))
	none, err := Find(dir)
	require.NoError(t, err)
	assert.Nil(t, none)
	holder := startTestHolderAt(t, dir)
	again, err := Ensure(t.Context(), dir, testExecutable(t))
	require.NoError(t, err)
	found, err := Find(dir)
	require.NoError(t, err)
	assert.Equal(t, []*Holder{holder, holder}, []*Holder{again, found})
	info, err := os.Stat(filepath.Join(dir, socketFile))
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	record, err := os.ReadFile(filepath.Join(dir, recordFile))
	require.NoError(t, err)
	assert.Equal(t, strconv.Itoa(holder.PID())+"\n", string(record))

	require.NoError(t, holder.Stop(t.Context()))
	assert.Eventually(t, func() bool { return syscall.Kill(holder.PID(), 0) == syscall.ESRCH }, testTimeout, time.Millisecond, "collected, too")
	none, err = Find(dir)
	require.NoError(t, err)
	assert.Nil(t, none)
	require.NoError(t, holder.Stop(t.Context()), "stopping twice is harmless")
	_, err = holder.Run(t.Context(), shellCommand("true"))
	assert.ErrorIs(t, err, errEnded)
	log, err := os.ReadFile(filepath.Join(dir, logFile))
	require.NoError(t, err)
	assert.Empty(t, string(log))
}

func TestConcurrentEnsure(t *testing.T) {
	requireNamespaces(t)
	dir := t.TempDir()
	const callers = 8
	pids := make([]int, callers)
	var all sync.WaitGroup
	for i := range callers {
		all.Go(func() {
			if holder, err := Ensure(t.Context(), dir, testExecutable(t)); assert.NoError(t, err) {
				pids[i] = holder.PID()
			}
		})
	}
	all.Wait()
	holder := startTestHolderAt(t, dir)
	for _, pid := range pids {
		assert.Equal(t, holder.PID(), pid)
	}
}

func TestKilledHolderEndsAllProcesses(t *testing.T) {
	holder, dir := startTestHolder(t)
	mark := uniqueSleep()
	_, code := runOutput(t, holder, shellCommand("setsid sleep "+mark+" >/dev/null 2>&1 &"))
	require.Zero(t, code)
	require.Eventually(t, func() bool { return hasProcess(t, mark) }, testTimeout, time.Millisecond)
	require.NoError(t, syscall.Kill(holder.PID(), syscall.SIGKILL))
	require.Eventually(t, func() bool { return !hasProcess(t, mark) }, testTimeout, time.Millisecond)
	require.Eventually(t, func() bool {
		found, err := Find(dir)
		return err == nil && found == nil
	}, testTimeout, time.Millisecond)
	assert.NoFileExists(t, filepath.Join(dir, socketFile))
	another := startTestHolderAt(t, dir)
	assert.NotEqual(t, holder.PID(), another.PID())
}

func TestStopEndsAll(t *testing.T) {
	for name, test := range map[string]struct {
		script string
		grace  time.Duration
	}{
		"detached":  {"exec sleep %s", testTimeout},
		"deaf":      {"trap '' TERM; exec sleep %s", 200 * time.Millisecond},
		"suspended": {"exec sleep %s", 200 * time.Millisecond},
		"nested":    {"exec unshare -Urpf sleep %s", 200 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			holder, _ := startTestHolder(t)
			mark := uniqueSleep()
			script := fmt.Sprintf(test.script, mark)
			runOutput(t, holder, shellCommand(`setsid sh -c "`+strings.ReplaceAll(script, "$", `\$`)+`" >/dev/null 2>&1 &`))
			require.Eventually(t, func() bool { return hasProcess(t, mark) }, testTimeout, time.Millisecond)
			if name == "suspended" {
				require.NoError(t, syscall.Kill(processWith(t, mark), syscall.SIGSTOP))
			}
			ctx, cancel := context.WithTimeout(t.Context(), test.grace)
			defer cancel()
			require.NoError(t, holder.Stop(ctx))
			assert.False(t, hasProcess(t, mark))
			if name == "detached" {
				assert.NoError(t, ctx.Err(), "SIGTERM is enough")
			}
		})
	}
}

func TestStopHungHolder(t *testing.T) {
	holder, _ := startTestHolder(t)
	require.NoError(t, syscall.Kill(holder.PID(), syscall.SIGSTOP))
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	require.NoError(t, holder.Stop(ctx))
	assert.Eventually(t, func() bool { return syscall.Kill(holder.PID(), 0) == syscall.ESRCH }, testTimeout, time.Millisecond)
}

func TestSignalEndsHolder(t *testing.T) {
	holder, dir := startTestHolder(t)
	require.NoError(t, syscall.Kill(holder.PID(), syscall.SIGHUP), "a terminal that closes does nothing")
	_, err := holder.Forwardings(t.Context())
	require.NoError(t, err)
	require.NoError(t, syscall.Kill(holder.PID(), syscall.SIGTERM))
	require.NoError(t, holder.waitForEnd(t.Context()))
	assert.NoFileExists(t, filepath.Join(dir, socketFile))
}

func TestRemovedFolderEndsHolder(t *testing.T) {
	holder, dir := startTestHolder(t)
	mark := uniqueSleep()
	runOutput(t, holder, shellCommand("setsid sleep "+mark+" >/dev/null 2>&1 &"))
	require.Eventually(t, func() bool { return hasProcess(t, mark) }, testTimeout, time.Millisecond)
	require.NoError(t, os.RemoveAll(dir))
	require.Eventually(t, func() bool { return !hasProcess(t, mark) && syscall.Kill(holder.PID(), 0) == syscall.ESRCH },
		testTimeout, time.Millisecond)
	require.NoError(t, os.Mkdir(dir, 0o700))
}

func TestEnvironmentInside(t *testing.T) {
	holder, dir := startTestHolder(t)
	said, code := runOutput(t, holder, shellCommand("id -u; id -g; ps -o pid= -p 1; cat /proc/sys/net/ipv4/ip_forward > /dev/null && ls /proc/sys/net/ipv4/conf"))
	assert.Zero(t, code)
	assert.Equal(t, "0 0 1 all default lo", strings.Join(strings.Fields(said), " "))

	said, _ = runOutput(t, holder, Command{Path: testExecutable(t), Args: []string{dir}, Env: []string{"HOLD_PART=find"}})
	assert.Equal(t, "1 <nil>", said)

	outside, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer outside.Close()
	_, port, err := net.SplitHostPort(outside.Addr().String())
	require.NoError(t, err)
	said, _ = runOutput(t, holder, Command{
		Path: "/bin/bash", Args: []string{"-c", "exec 2>&1; : < /dev/tcp/127.0.0.1/" + port}})
	assert.Contains(t, said, "refused", "the loopback device is another one")

	file := filepath.Join(dir, "file")
	runOutput(t, holder, shellCommand("mkdir "+dir+"/mnt && mount -t tmpfs none "+dir+"/mnt && touch "+dir+"/mnt/hidden; echo text > "+file))
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, "text\n", string(data))
	assert.NoFileExists(t, dir+"/mnt/hidden", "mounts stay inside")
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	require.NoError(t, err)
	assert.NotContains(t, string(mounts), dir)
}

func TestOrphansAreCollected(t *testing.T) {
	holder, _ := startTestHolder(t)
	runOutput(t, holder, shellCommand("for i in 1 2 3 4 5 6 7 8; do (true & ); (sleep 0.01 & ) ; done"))
	require.Eventually(t, func() bool {
		said, code := runOutput(t, holder, shellCommand("cat /proc/[0-9]*/stat | wc -l"))
		return code == 0 && strings.TrimSpace(said) == "4" // holder, shell, cat, wc
	}, testTimeout, time.Millisecond)
}

func TestCheckSupportReason(t *testing.T) {
	holder, _ := startTestHolder(t)
	said, _ := runOutput(t, holder, Command{Path: testExecutable(t), Env: []string{"HOLD_PART=possible"}})
	assert.Equal(t, "<nil>", said, "namespaces in namespaces")
	runOutput(t, holder, shellCommand("echo 0 > /proc/sys/user/max_user_namespaces"))
	said, _ = runOutput(t, holder, Command{Path: testExecutable(t), Env: []string{"HOLD_PART=possible"}})
	assert.Contains(t, said, "user.max_user_namespaces is 0")
}

func TestProgramWithoutServe(t *testing.T) {
	requireNamespaces(t)
	_, err := Ensure(t.Context(), t.TempDir(), "/bin/true")
	assert.ErrorContains(t, err, "does not answer")
	t.Setenv(markerEnv, "1")
	_, err = Ensure(t.Context(), t.TempDir(), testExecutable(t))
	assert.ErrorContains(t, err, "does not serve")
	assert.ErrorContains(t, Serve([]string{t.TempDir()}), "do not start it manually")
}

func TestHolderInheritsNoFiles(t *testing.T) {
	requireNamespaces(t)
	read, write, err := os.Pipe()
	require.NoError(t, err)
	defer read.Close()
	// The process that starts a holder has an unknown file open.
	dir := t.TempDir()
	fd, err := syscall.Dup(int(write.Fd()))
	require.NoError(t, err)
	startTestHolderAt(t, dir)
	require.NoError(t, syscall.Close(fd))
	require.NoError(t, write.Close())
	ended := make(chan error, 1)
	go func() {
		_, err := io.ReadAll(read)
		ended <- err
	}()
	select {
	case err := <-ended:
		assert.NoError(t, err)
	case <-time.After(testTimeout):
		t.Fatal("the holder keeps a file that it was not given")
	}
}
