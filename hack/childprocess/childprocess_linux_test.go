// SPDX-License-Identifier: Apache-2.0

package childprocess

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// roleVariable selects the role of a process that a test starts from this test binary.
const roleVariable = "MORTAL_ROLE"

func TestMain(m *testing.M) {
	role, file, _ := strings.Cut(os.Getenv(roleVariable), " ")
	switch role {
	case "":
		os.Exit(m.Run())
	case "starter": // starts the sleeper and waits to be killed
		runtime.LockOSThread() // the first thread of a process never ends: reserve it
		cmd := exec.Command("/proc/self/exe")
		cmd.Env = append(os.Environ(), roleVariable+"=sleeper")
		in, err := cmd.StdinPipe()
		exitOnError(err)
		out, err := cmd.StdoutPipe()
		exitOnError(err)
		// Start in a thread that ends: the sleeper must not end with it.
		number := make(chan int)
		go func() {
			runtime.LockOSThread()
			exitOnError(Start(cmd))
			number <- syscall.Gettid()
		}()
		for thread := fmt.Sprintf("/proc/self/task/%d", <-number); ; runtime.Gosched() {
			if _, err := os.Stat(thread); err != nil {
				break
			}
		}
		_, err = io.WriteString(in, "are you there?\n")
		exitOnError(err)
		line, err := bufio.NewReader(out).ReadString('\n')
		if exitOnError(err); line != "are you there?\n" {
			exitOnError(fmt.Errorf("it says %q", line))
		}
		exitOnError(RunAfterExit("touch", file))
		fmt.Println(cmd.Process.Pid)
		<-time.After(10 * time.Minute)
	case "sleeper":
		_, err := io.Copy(os.Stdout, os.Stdin)
		exitOnError(err)
		<-time.After(10 * time.Minute)
	}
}

func exitOnError(err error) {
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

// waitForExit waits until the process no longer exists.
func waitForExit(t *testing.T, pid int) {
	t.Helper()
	require.Eventually(t, func() bool {
		if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
			return true
		}
		// a zombie is dead, too
		state, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		return err == nil && strings.Contains(string(state), ") Z ")
	}, time.Minute, 10*time.Millisecond, "process %d is still there", pid)
}

// TestChildrenOfKilledProcess checks that programs of Start end and commands of After run when the
// starter is killed.
func TestChildrenOfKilledProcess(t *testing.T) {
	file := filepath.Join(t.TempDir(), "after")
	starter := exec.Command("/proc/self/exe")
	starter.Env = append(os.Environ(), roleVariable+"=starter "+file)
	out, err := starter.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, Start(starter))
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	require.NoError(t, err, line)
	require.NoError(t, syscall.Kill(pid, 0), "it runs while its starter does")
	assert.NoFileExists(t, file)

	require.NoError(t, starter.Process.Kill())
	assert.Error(t, starter.Wait())
	waitForExit(t, pid)
	require.Eventually(t, func() bool { _, err := os.Stat(file); return err == nil }, time.Minute, 10*time.Millisecond)
}

// TestTieToEndedParent checks that Tie fails if the starter has already ended.
func TestTieToEndedParent(t *testing.T) {
	assert.ErrorContains(t, TieToParent(os.Getppid()+1), "which started this one, has ended")
	// undo Tie for the other tests
	_, _, errno := syscall.RawSyscall(syscall.SYS_PRCTL, syscall.PR_SET_PDEATHSIG, 0, 0)
	assert.Zero(t, errno)
}

// TestStartErrors checks that Start returns the error for a missing program, and keeps SysProcAttr.
func TestStartErrors(t *testing.T) {
	assert.ErrorIs(t, Start(exec.Command("/no/such/program")), os.ErrNotExist)
	cmd := exec.Command("/proc/self/exe")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Env = append(os.Environ(), roleVariable+"=sleeper")
	require.NoError(t, Start(cmd))
	assert.True(t, cmd.SysProcAttr.Setsid, "what else is asked for stays")
	require.NoError(t, cmd.Process.Kill())
	assert.Error(t, cmd.Wait())
}
