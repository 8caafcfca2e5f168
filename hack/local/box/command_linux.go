// SPDX-License-Identifier: Apache-2.0

package box

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// searchPath is the PATH for finding programs if Env has none, as in containers.
const searchPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// execute replaces this process by the command; the box is furnished or joined. It returns only if
// it fails.
func (o childRequest) execute(role string, out *os.File) error {
	spec := o.Spec
	for _, limit := range spec.Rlimits {
		if err := unix.Setrlimit(limit.Resource, &unix.Rlimit{Cur: limit.Soft, Max: limit.Hard}); err != nil {
			return fmt.Errorf("setting limit %d to %d, %d: %w", limit.Resource, limit.Soft, limit.Hard, err)
		}
	}
	if spec.Dir == "" {
		spec.Dir = "/"
	}
	if err := os.Chdir(spec.Dir); err != nil {
		return fmt.Errorf("changing to the working directory: %w", err)
	}
	if role == roleExec {
		// A separate group can be killed as a whole. Process 1 got its group when it was created.
		if _, err := syscall.Setsid(); err != nil {
			return fmt.Errorf("creating a session: %w", err)
		}
	}
	if o.Terminal {
		if err := unix.IoctlSetInt(0, unix.TIOCSCTTY, 0); err != nil {
			return fmt.Errorf("making standard input the controlling terminal: %w", err)
		}
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("forbidding new privileges: %w", err)
	}
	keep, err := parseCapabilities(spec.Capabilities)
	if err != nil {
		return err
	}
	if err := limitCapabilities(keep); err != nil {
		return err
	}
	path, err := findProgram(spec.Args[0], spec.Env)
	if err != nil {
		return err
	}
	if err := unix.PthreadSigmask(unix.SIG_SETMASK, &unix.Sigset_t{}, nil); err != nil {
		return fmt.Errorf("unblocking signals: %w", err)
	}
	if spec.Init {
		return runInit(path, spec, out)
	}
	if role == roleStart {
		// The kernel stores this per thread, and this thread may not be the first.
		if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0); err != nil {
			return fmt.Errorf("tying the box to its creator: %w", err)
		}
	}
	if err := json.NewEncoder(out).Encode(childResponse{Ready: true}); err != nil {
		return fmt.Errorf("answering: %w", err)
	}
	return explainExecError(path, syscall.Exec(path, spec.Args, spec.Env))
}

// findProgram returns the path of a program in the box.
func findProgram(name string, env []string) (string, error) {
	if strings.Contains(name, "/") {
		return name, nil
	}
	folders := searchPath
	for _, variable := range env {
		if value, found := strings.CutPrefix(variable, "PATH="); found {
			folders = value
		}
	}
	for _, folder := range filepath.SplitList(folders) {
		path := filepath.Join("/", folder, name)
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && unix.Access(path, unix.X_OK) == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("there is no such program in %s: %w", folders, syscall.ENOENT)
}

// explainExecError distinguishes a missing program from a program that is not static.
func explainExecError(path string, err error) error {
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if _, missing := os.Stat(path); missing != nil {
		return err
	}
	return fmt.Errorf("%w: its interpreter or linker is not in the box", err)
}
