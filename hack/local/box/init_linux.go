// SPDX-License-Identifier: Apache-2.0

package box

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

// runInit is process 1 of a box with Init: it runs the command, forwards signals, collects
// orphans and exits as the command does. It returns only if the command cannot start.
func runInit(path string, spec Spec, out *os.File) error {
	signals := make(chan os.Signal, 64)
	signal.Notify(signals)
	// The child is forked from this thread, which has only the wanted capabilities.
	child, err := syscall.ForkExec(path, spec.Args, &syscall.ProcAttr{
		Dir:   spec.Dir,
		Env:   spec.Env,
		Files: []uintptr{0, 1, 2},
		Sys:   &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		return explainExecError(path, err)
	}
	if err := json.NewEncoder(out).Encode(childResponse{Ready: true}); err != nil {
		return fmt.Errorf("answering: %w", err)
	}
	// The parent of the box waits for the end of this file, which an exec closes.
	_ = out.Close()
	for received := range signals {
		switch received {
		case unix.SIGCHLD:
			if status, ended := collectChildren(child); ended {
				os.Exit(exitOf(status).Code)
			}
		case unix.SIGURG: // from the Go runtime
		default:
			if number, ok := received.(syscall.Signal); ok {
				_ = syscall.Kill(child, number)
			}
		}
	}
	return errors.New("no more signals come")
}

// collectChildren collects all processes that have ended, and reports whether the command is one of
// them.
func collectChildren(child int) (status syscall.WaitStatus, ended bool) {
	for {
		var one syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &one, syscall.WNOHANG, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil || pid == 0:
			return status, ended
		case pid == child:
			status, ended = one, true
		}
	}
}

func exitOf(status syscall.WaitStatus) Exit {
	if status.Signaled() {
		return Exit{Code: 128 + int(status.Signal()), Signal: status.Signal()}
	}
	return Exit{Code: status.ExitStatus()}
}
