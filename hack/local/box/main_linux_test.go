// SPDX-License-Identifier: Apache-2.0

package box

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

const (
	// envRunner makes this program start the box in its JSON value and wait for it.
	envRunner = "PERGOLA_BOX_TEST_RUNNER"
	// envNamespace makes this program run its tests as uid 0 and process 1 of a user namespace.
	envNamespace = "PERGOLA_BOX_TEST_NAMESPACE"
	// envProgram is the path of the prebuilt program for boxes.
	envProgram  = "PERGOLA_BOX_TEST_PROGRAM"
	testTimeout = 20 * time.Second
)

func TestMain(m *testing.M) {
	InitChild()
	if spec := os.Getenv(envRunner); spec != "" {
		runBoxProcess(spec)
	}
	if os.Getenv(envNamespace) != "" {
		if err := unix.Mount("", "/", "", unix.MS_PRIVATE|unix.MS_REC, ""); err != nil {
			panic(err)
		}
		if err := unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
			panic(err)
		}
	}
	code := m.Run()
	if os.Getenv(envProgram) == "" && buildFolder != "" {
		_ = os.RemoveAll(buildFolder)
	}
	os.Exit(code)
}

func runBoxProcess(text string) {
	var spec Spec
	if err := json.Unmarshal([]byte(text), &spec); err != nil {
		panic(err)
	}
	spec.Stdout = os.Stdout
	process, err := Start(spec)
	if err != nil {
		panic(err)
	}
	fmt.Println(process.PID())
	os.Exit(process.Wait().Code)
}

var buildFolder string

// buildProgram returns the path of the static executable of testdata/inside.
var buildProgram = sync.OnceValues(func() (string, error) {
	if path := os.Getenv(envProgram); path != "" {
		return path, nil
	}
	var err error
	if buildFolder, err = os.MkdirTemp("", "box-test-"); err != nil {
		return "", err
	}
	path := filepath.Join(buildFolder, "inside")
	command := exec.Command("go", "build", "-o", path, "main.go")
	command.Dir = "testdata/inside"
	// The program has no dependencies, so it needs no module.
	command.Env = append(os.Environ(), "CGO_ENABLED=0", "GO111MODULE=off")
	if out, err := command.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building the program of the tests: %w: %s", err, out)
	}
	return path, nil
})

// testProgramSpec returns a spec whose command is the program of the tests.
func testProgramSpec(t *testing.T, args ...string) (Spec, *strings.Builder) {
	t.Helper()
	if err := CheckSupport(); err != nil {
		t.Skip(err)
	}
	path, err := buildProgram()
	require.NoError(t, err)
	out := &strings.Builder{}
	return Spec{
		Root:   emptyFolder(t),
		Binds:  []Bind{{Source: path, Target: "/bin/inside", ReadOnly: true}},
		Args:   append([]string{"inside"}, args...),
		Env:    []string{"PATH=/sbin:/bin"},
		Stdout: out,
		Stderr: out,
	}, out
}

// emptyFolder returns a folder and checks at the end of the test that it is still empty.
func emptyFolder(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	t.Cleanup(func() {
		entries, err := os.ReadDir(folder)
		require.NoError(t, err)
		require.Empty(t, entries, "what is in the root of a box is not on the machine")
	})
	return folder
}

// startBox starts a box that ends with the test.
func startBox(t *testing.T, spec Spec) *Process {
	t.Helper()
	process, err := Start(spec)
	require.NoError(t, err)
	t.Cleanup(func() {
		process.Kill()
		awaitExit(t, process)
	})
	return process
}

// awaitExit waits for the end of a box, at most patience.
func awaitExit(t *testing.T, process *Process) Exit {
	t.Helper()
	select {
	case <-process.Done():
	case <-time.After(testTimeout):
		require.Fail(t, "the box does not end")
	}
	return process.Wait()
}

// runOutput runs a box to its end and returns its output.
func runOutput(t *testing.T, spec Spec) (string, Exit) {
	t.Helper()
	exit := awaitExit(t, startBox(t, spec))
	return fmt.Sprint(spec.Stdout), exit
}

// isAlive reports whether a process exists and is not a zombie.
func isAlive(pid int) bool {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(data), ") ")
	return !strings.HasPrefix(rest, "Z") && !strings.HasPrefix(rest, "X")
}

func currentMounts(t *testing.T) string {
	t.Helper()
	data, err := os.ReadFile("/proc/self/mountinfo")
	require.NoError(t, err)
	return string(data)
}

// TestInUserNamespace runs all tests again as in production: as uid 0 of a user namespace with its
// own network, mounts and process ids.
func TestInUserNamespace(t *testing.T) {
	if os.Getenv(envNamespace) != "" {
		t.Skip("this is the inner run")
	}
	if testing.Short() {
		t.Skip("short")
	}
	if err := CheckSupport(); err != nil {
		t.Skip(err)
	}
	path, err := buildProgram()
	require.NoError(t, err)
	folder := t.TempDir()
	command := exec.Command("/proc/self/exe", "-test.v", "-test.timeout=5m")
	command.Env = append(os.Environ(), envNamespace+"=1", envProgram+"="+path, "TMPDIR="+folder)
	command.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNET | syscall.CLONE_NEWNS | syscall.CLONE_NEWPID,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}},
		Pdeathsig:   syscall.SIGKILL,
	}
	out, err := command.CombinedOutput()
	require.NoError(t, err, string(out))
	require.Contains(t, string(out), "--- PASS: TestCapabilities", "it is not skipped there")
	require.Contains(t, string(out), "--- PASS: TestNetworkNamespace")
	entries, err := os.ReadDir(folder)
	require.NoError(t, err)
	require.Empty(t, entries)
}
