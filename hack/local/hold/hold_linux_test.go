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

const patience = 30 * time.Second

// TestMain runs the program of the process that a test starts.
func TestMain(m *testing.M) {
	Become()
	if part, found := parts[os.Getenv("HOLD_PART")]; found {
		part(os.Args[1:])
		os.Exit(0)
	}
	os.Exit(m.Run())
}

var parts = map[string]func([]string){
	"possible": func([]string) { fmt.Print(Possible()) },
	"find": func(args []string) {
		holder, err := Find(args[0])
		fmt.Print(holder.PID(), " ", err)
	},
	// serve answers a connection with its input in upper case, once the client has closed its half.
	"serve": func(args []string) {
		listener, err := net.Listen("tcp", args[0])
		must(err)
		fmt.Println("ready")
		for {
			conn, err := listener.Accept()
			must(err)
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
		must(err)
		_, err = holder.Run(context.Background(), shell(args[1]))
		must(err)
	},
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func needNamespaces(t *testing.T) {
	t.Helper()
	if err := Possible(); err != nil {
		t.Skip(err)
	}
}

func self(t *testing.T) string {
	t.Helper()
	path, err := os.Executable()
	require.NoError(t, err)
	return path
}

// ensure starts a holder that ends with the test.
func ensure(t *testing.T) (*Holder, string) {
	t.Helper()
	needNamespaces(t)
	dir := t.TempDir()
	return ensureAt(t, dir), dir
}

func ensureAt(t *testing.T, dir string) *Holder {
	t.Helper()
	holder, err := Ensure(t.Context(), dir, self(t))
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

func shell(script string) Command {
	return Command{Path: "/bin/sh", Args: []string{"-c", script}, Env: []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin"}}
}

// output runs a command inside and returns its output and exit code.
func output(t *testing.T, holder *Holder, command Command) (string, int) {
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

// lives reports whether a process of the machine has this argument.
func lives(t *testing.T, argument string) bool {
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

// uniqueSeconds returns a unique duration to sleep, which identifies a process.
func uniqueSeconds() string { return fmt.Sprintf("600.%d", time.Now().UnixNano()) }

func TestEnsureAndStop(t *testing.T) {
	needNamespaces(t)
	dir := filepath.Join(t.TempDir(), strings.Repeat("long/", 40))
	none, err := Find(dir)
	require.NoError(t, err)
	assert.Nil(t, none)
	holder := ensureAt(t, dir)
	again, err := Ensure(t.Context(), dir, self(t))
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
	assert.Eventually(t, func() bool { return syscall.Kill(holder.PID(), 0) == syscall.ESRCH }, patience, time.Millisecond, "collected, too")
	none, err = Find(dir)
	require.NoError(t, err)
	assert.Nil(t, none)
	require.NoError(t, holder.Stop(t.Context()), "stopping twice is harmless")
	_, err = holder.Run(t.Context(), shell("true"))
	assert.ErrorIs(t, err, errEnded)
	log, err := os.ReadFile(filepath.Join(dir, logFile))
	require.NoError(t, err)
	assert.Empty(t, string(log))
}

func TestManyEnsureOneHolder(t *testing.T) {
	needNamespaces(t)
	dir := t.TempDir()
	const callers = 8
	pids := make([]int, callers)
	var all sync.WaitGroup
	for i := range callers {
		all.Go(func() {
			if holder, err := Ensure(t.Context(), dir, self(t)); assert.NoError(t, err) {
				pids[i] = holder.PID()
			}
		})
	}
	all.Wait()
	holder := ensureAt(t, dir)
	for _, pid := range pids {
		assert.Equal(t, holder.PID(), pid)
	}
}

func TestKilledHolderTakesAllWithIt(t *testing.T) {
	holder, dir := ensure(t)
	mark := uniqueSeconds()
	_, code := output(t, holder, shell("setsid sleep "+mark+" >/dev/null 2>&1 &"))
	require.Zero(t, code)
	require.Eventually(t, func() bool { return lives(t, mark) }, patience, time.Millisecond)
	require.NoError(t, syscall.Kill(holder.PID(), syscall.SIGKILL))
	require.Eventually(t, func() bool { return !lives(t, mark) }, patience, time.Millisecond)
	require.Eventually(t, func() bool {
		found, err := Find(dir)
		return err == nil && found == nil
	}, patience, time.Millisecond)
	assert.NoFileExists(t, filepath.Join(dir, socketFile))
	another := ensureAt(t, dir)
	assert.NotEqual(t, holder.PID(), another.PID())
}

func TestStopEndsAll(t *testing.T) {
	for name, test := range map[string]struct {
		script string
		grace  time.Duration
	}{
		"detached":  {"exec sleep %s", patience},
		"deaf":      {"trap '' TERM; exec sleep %s", 200 * time.Millisecond},
		"suspended": {"exec sleep %s", 200 * time.Millisecond},
		"nested":    {"exec unshare -Urpf sleep %s", 200 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			holder, _ := ensure(t)
			mark := uniqueSeconds()
			script := fmt.Sprintf(test.script, mark)
			output(t, holder, shell(`setsid sh -c "`+strings.ReplaceAll(script, "$", `\$`)+`" >/dev/null 2>&1 &`))
			require.Eventually(t, func() bool { return lives(t, mark) }, patience, time.Millisecond)
			if name == "suspended" {
				require.NoError(t, syscall.Kill(processWith(t, mark), syscall.SIGSTOP))
			}
			ctx, cancel := context.WithTimeout(t.Context(), test.grace)
			defer cancel()
			require.NoError(t, holder.Stop(ctx))
			assert.False(t, lives(t, mark))
			if name == "detached" {
				assert.NoError(t, ctx.Err(), "SIGTERM is enough")
			}
		})
	}
}

func TestStopOfAHungHolder(t *testing.T) {
	holder, _ := ensure(t)
	require.NoError(t, syscall.Kill(holder.PID(), syscall.SIGSTOP))
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	require.NoError(t, holder.Stop(ctx))
	assert.Eventually(t, func() bool { return syscall.Kill(holder.PID(), 0) == syscall.ESRCH }, patience, time.Millisecond)
}

func TestSignalEndsHolder(t *testing.T) {
	holder, dir := ensure(t)
	require.NoError(t, syscall.Kill(holder.PID(), syscall.SIGHUP), "a terminal that closes does nothing")
	_, err := holder.Forwardings(t.Context())
	require.NoError(t, err)
	require.NoError(t, syscall.Kill(holder.PID(), syscall.SIGTERM))
	require.NoError(t, holder.gone(t.Context()))
	assert.NoFileExists(t, filepath.Join(dir, socketFile))
}

func TestRemovedFolderEndsHolder(t *testing.T) {
	holder, dir := ensure(t)
	mark := uniqueSeconds()
	output(t, holder, shell("setsid sleep "+mark+" >/dev/null 2>&1 &"))
	require.Eventually(t, func() bool { return lives(t, mark) }, patience, time.Millisecond)
	require.NoError(t, os.RemoveAll(dir))
	require.Eventually(t, func() bool { return !lives(t, mark) && syscall.Kill(holder.PID(), 0) == syscall.ESRCH },
		patience, time.Millisecond)
	require.NoError(t, os.Mkdir(dir, 0o700))
}

func TestInside(t *testing.T) {
	holder, dir := ensure(t)
	said, code := output(t, holder, shell("id -u; id -g; ps -o pid= -p 1; cat /proc/sys/net/ipv4/ip_forward > /dev/null && ls /proc/sys/net/ipv4/conf"))
	assert.Zero(t, code)
	assert.Equal(t, "0 0 1 all default lo", strings.Join(strings.Fields(said), " "))

	said, _ = output(t, holder, Command{Path: self(t), Args: []string{dir}, Env: []string{"HOLD_PART=find"}})
	assert.Equal(t, "1 <nil>", said)

	outside, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer outside.Close()
	_, port, err := net.SplitHostPort(outside.Addr().String())
	require.NoError(t, err)
	said, _ = output(t, holder, Command{
		Path: "/bin/bash", Args: []string{"-c", "exec 2>&1; : < /dev/tcp/127.0.0.1/" + port}})
	assert.Contains(t, said, "refused", "the loopback device is another one")

	file := filepath.Join(dir, "file")
	output(t, holder, shell("mkdir "+dir+"/mnt && mount -t tmpfs none "+dir+"/mnt && touch "+dir+"/mnt/hidden; echo text > "+file))
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, "text\n", string(data))
	assert.NoFileExists(t, dir+"/mnt/hidden", "mounts stay inside")
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	require.NoError(t, err)
	assert.NotContains(t, string(mounts), dir)
}

func TestOrphansAreCollected(t *testing.T) {
	holder, _ := ensure(t)
	output(t, holder, shell("for i in 1 2 3 4 5 6 7 8; do (true & ); (sleep 0.01 & ) ; done"))
	require.Eventually(t, func() bool {
		said, code := output(t, holder, shell("cat /proc/[0-9]*/stat | wc -l"))
		return code == 0 && strings.TrimSpace(said) == "4" // holder, shell, cat, wc
	}, patience, time.Millisecond)
}

func TestPossibleGivesTheReason(t *testing.T) {
	holder, _ := ensure(t)
	said, _ := output(t, holder, Command{Path: self(t), Env: []string{"HOLD_PART=possible"}})
	assert.Equal(t, "<nil>", said, "namespaces in namespaces")
	output(t, holder, shell("echo 0 > /proc/sys/user/max_user_namespaces"))
	said, _ = output(t, holder, Command{Path: self(t), Env: []string{"HOLD_PART=possible"}})
	assert.Contains(t, said, "user.max_user_namespaces is 0")
}

func TestProgramThatIsNoHolder(t *testing.T) {
	needNamespaces(t)
	_, err := Ensure(t.Context(), t.TempDir(), "/bin/true")
	assert.ErrorContains(t, err, "says nothing")
	t.Setenv(marker, "1")
	_, err = Ensure(t.Context(), t.TempDir(), self(t))
	assert.ErrorContains(t, err, "does not serve")
	assert.ErrorContains(t, Serve([]string{t.TempDir()}), "not by hand")
}

func TestNothingIsInherited(t *testing.T) {
	needNamespaces(t)
	read, write, err := os.Pipe()
	require.NoError(t, err)
	defer read.Close()
	// The process that starts a holder has an unknown file open.
	dir := t.TempDir()
	fd, err := syscall.Dup(int(write.Fd()))
	require.NoError(t, err)
	ensureAt(t, dir)
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
	case <-time.After(patience):
		t.Fatal("the holder keeps a file that it was not given")
	}
}
