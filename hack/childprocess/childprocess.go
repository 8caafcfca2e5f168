// SPDX-License-Identifier: Apache-2.0

// Package childprocess ends programs that a test has started when the process of the test ends,
// even if it is killed or times out. On systems other than Linux only After does so.
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
	RunInLastingThread(cmd.Start, &err)
	return err
}

// RunInLastingThread calls do in a thread that lives as long as this process, and stores the error
// in result. Linux ends a program with the thread that started it, and Go ends threads before the
// process.
func RunInLastingThread(do func() error, result *error) {
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
	default: // the thread lives on without further work
	}
}

// thread is an operating system thread that runs the functions sent to it.
type thread chan func()

var idleThreads = make(chan thread, 8)

func (t thread) run() {
	runtime.LockOSThread() // never unlocked, and the loop never ends: the thread stays
	for do := range t {
		do()
	}
}

// RunAfterExit runs a cleanup command once this process has ended, for processes that Start cannot
// start. Its output and errors are discarded. It finds nothing to do if the test has cleaned up
// itself.
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

// openPipes references the pipes, which the system closes with this process. Go would close an
// unreferenced pipe earlier.
var openPipes struct {
	sync.Mutex
	pipes []io.Closer
}
