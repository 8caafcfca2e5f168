// SPDX-License-Identifier: Apache-2.0

// Package childprocess starts programs in tests. They end with the process of the test, even if it
// is killed, manually or after a timeout, and cannot clean up. On systems other than Linux only
// After does that. It is a copy of hack/childprocess, which is another module.
package childprocess

import (
	"fmt"
	"io"
	"os/exec"
	"runtime"
	"sync"
)

// Start starts a program that ends with this process at the latest.
func Start(cmd *exec.Cmd) error {
	setParentDeathSignal(cmd)
	var err error
	runInLastingThread(cmd.Start, &err)
	return err
}

// runInLastingThread calls a function on a thread that lasts as long as this process and stores its
// error. Linux ends a program with the thread that started it, and Go ends threads earlier.
func runInLastingThread(do func() error, result *error) {
	var t thread
	select {
	case t = <-idleThreads:
	default:
		t = make(thread)
		go t.run()
	}
	done := make(chan struct{})
	t <- func() {
		defer close(done)
		*result = do()
	}
	<-done
	select {
	case idleThreads <- t:
	default: // the thread lasts, unused
	}
}

// thread is an OS thread that runs the functions sent to it.
type thread chan func()

var idleThreads = make(chan thread, 8)

func (t thread) run() {
	runtime.LockOSThread() // never unlocked, and the loop is endless: the thread stays
	for do := range t {
		do()
	}
}

// RunAfterExit runs a command once this process has ended, for cleanup that it may not reach. The
// output is dropped; the command must accept that its work is already done.
func RunAfterExit(name string, args ...string) error {
	cmd := exec.Command("sh", append([]string{"-c", `cat >/dev/null; exec "$@" >/dev/null 2>&1`, "sh", name}, args...)...)
	setNewSession(cmd)
	open, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return fmt.Errorf("preparing for the end of this process: %w", err)
	}
	openPipes.Lock()
	defer openPipes.Unlock()
	openPipes.pipes = append(openPipes.pipes, open)
	return nil
}

// openPipes are the pipes that the system closes with this process; the garbage collector would
// close unused pipes earlier.
var openPipes struct {
	sync.Mutex
	pipes []io.Closer
}
