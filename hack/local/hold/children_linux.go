// SPDX-License-Identifier: Apache-2.0

package hold

import (
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// children are the children of process 1: started processes, and all orphans of its namespace. It
// collects all of them, so os/exec cannot be used in this process.
type children struct {
	mu      sync.Mutex
	started map[int]chan<- syscall.WaitStatus
}

func newChildren() *children {
	return &children{started: map[int]chan<- syscall.WaitStatus{}}
}

// reap collects dead children forever.
func (c *children) reap() {
	died := make(chan os.Signal, 1)
	signal.Notify(died, syscall.SIGCHLD)
	go func() {
		for ; ; <-died {
			for c.reapOne() {
			}
		}
	}()
}

func (c *children) reapOne() bool {
	// The lock ensures that a child is recorded before it is collected, and that no signal goes to
	// a reused id.
	c.mu.Lock()
	defer c.mu.Unlock()
	var status syscall.WaitStatus
	pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG, nil)
	if err == syscall.EINTR {
		return true
	}
	if err != nil || pid <= 0 {
		return false
	}
	if ended, found := c.started[pid]; found {
		delete(c.started, pid)
		ended <- status
	}
	return true
}

// start starts a process and sends its exit status once.
func (c *children) start(path string, args []string, attributes *syscall.ProcAttr) (pid int, ended <-chan syscall.WaitStatus, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	pid, err = syscall.ForkExec(path, args, attributes)
	if err != nil {
		return 0, nil, err
	}
	told := make(chan syscall.WaitStatus, 1)
	c.started[pid] = told
	return pid, told, nil
}

// signalGroup sends a signal to the process group of a started process, unless it has ended.
func (c *children) signalGroup(pid int, signal syscall.Signal) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, found := c.started[pid]; found {
		_ = syscall.Kill(-pid, signal)
	}
}
