// SPDX-License-Identifier: Apache-2.0

package box

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// The child is this program again, with childName as Args[0] and a role as Args[1].
const (
	childName = "pergola-box"
	roleStart = "start"
	roleExec  = "exec"
)

// The child reads its order from one inherited file and answers through another. For an exec the
// third is the box, a pidfd of its process 1.
const (
	requestFile  = 3
	responseFile = 4
	boxFile      = 5
)

// childEnv minimizes the start of the child's Go runtime, which lives for milliseconds.
var childEnv = []string{"GOMAXPROCS=1", "GOGC=off"}

// childRequest is the task of the child. It is sent after the child has set its parent-death
// signal.
type childRequest struct {
	Spec Spec
	// Terminal is that of Command.
	Terminal bool
	// DryRun ends the child with exit code 0 instead of executing the command.
	DryRun bool
}

// childResponse is sent once before the command is executed, and once more if that fails.
type childResponse struct {
	Ready bool   `json:",omitempty"`
	Error string `json:",omitempty"`
	// Errno is the root cause of Error.
	Errno syscall.Errno `json:",omitempty"`
}

// setUpError is an error of the child, as reported to its parent.
type setUpError struct {
	text  string
	errno syscall.Errno
}

func (e *setUpError) Error() string { return e.text }

func (e *setUpError) Unwrap() error {
	if e.errno == 0 {
		return nil
	}
	return e.errno
}

// isInitChildCalled is true once main has called Become: otherwise the child would run main.
var isInitChildCalled bool

// InitChild must be called first in main (in tests, in TestMain). In the child process of a box it
// does not return; in all others it does nothing.
func InitChild() {
	isInitChildCalled = true
	if len(os.Args) != 2 || os.Args[0] != childName {
		return
	}
	// Namespaces, capabilities and limits belong to this thread until it executes the command.
	runtime.LockOSThread()
	out := os.NewFile(responseFile, "answer")
	err := runChild(os.Args[1], os.NewFile(requestFile, "order"), out)
	refusal := childResponse{Error: err.Error()}
	errors.As(err, &refusal.Errno)
	_ = json.NewEncoder(out).Encode(refusal)
	os.Exit(1)
}

// runChild returns only if it fails.
func runChild(role string, in, out *os.File) error {
	// The command inherits no file, not even a forgotten one. This includes in and out.
	if err := unix.CloseRange(3, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return fmt.Errorf("closing inherited files: %w", err)
	}
	data, err := io.ReadAll(in)
	if err != nil {
		return fmt.Errorf("reading the instructions: %w", err)
	}
	var request childRequest
	if err := json.Unmarshal(data, &request); err != nil {
		return fmt.Errorf("reading the instructions: %w", err)
	}
	unix.Umask(0o022)
	if role == roleStart {
		err = setUpBox(request.Spec)
	} else {
		err = joinMounts()
	}
	if err != nil {
		return err
	}
	if request.DryRun {
		_ = json.NewEncoder(out).Encode(childResponse{Ready: true})
		os.Exit(0)
	}
	return request.execute(role, out)
}
