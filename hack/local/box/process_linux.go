// SPDX-License-Identifier: Apache-2.0

package box

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// Process is the command of a box, and represents the box.
type Process struct {
	spec             Spec
	hasUserNamespace bool // the box has its own user namespace
	child            *os.Process
	done             chan struct{}
	exit             Exit // valid once done is closed
}

// awaitEnd collects the process. No other code of this program may wait for any child.
func (p *Process) awaitEnd(files *streams) {
	p.exit = waitForExit(p.child)
	files.finishCopying()
	close(p.done)
}

func waitForExit(child *os.Process) Exit {
	state, err := child.Wait()
	if err != nil {
		// Other code has collected it, and its exit status is lost.
		return Exit{Code: 255}
	}
	return exitOf(state.Sys().(syscall.WaitStatus))
}

// PID is the id of process 1 of the box, as the caller sees it.
func (p *Process) PID() int { return p.child.Pid }

// Done returns a channel that is closed when the box has ended and all its output is copied.
func (p *Process) Done() <-chan struct{} { return p.done }

// Wait waits for the end of the box and returns its exit.
func (p *Process) Wait() Exit {
	<-p.done
	return p.exit
}

// Signal sends a signal to process 1 of the box. The kernel drops signals that process 1 has no
// handler for, as in every container, except SIGKILL and SIGSTOP.
func (p *Process) Signal(signal os.Signal) error {
	err := p.child.Signal(signal)
	if errors.Is(err, os.ErrProcessDone) {
		err = ErrEnded
	}
	if err != nil {
		return fmt.Errorf("sending %s to %q: %w", signal, p.spec.Args[0], err)
	}
	return nil
}

// Kill ends all processes of the box. Wait returns soon after.
func (p *Process) Kill() { _ = p.child.Kill() }
