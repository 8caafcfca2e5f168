// Package mortal is for tests that start programs: these end with the process of the test, however
// it ends. One that is killed, by hand or because its time is over, cleans nothing up. On other
// systems than Linux only After does that. It is that of hack/mortal, which is another module.
package mortal

import (
	"fmt"
	"io"
	"os/exec"
	"runtime"
	"sync"
)

// Start starts a program that ends at the latest with this process.
func Start(cmd *exec.Cmd) error {
	tie(cmd)
	var err error
	lasting(cmd.Start, &err)
	return err
}

// lasting does something in a thread that lasts as long as this process, and tells its error: Linux
// ends a program with the thread that started it, and Go ends threads before the process.
func lasting(do func() error, result *error) {
	var t thread
	select {
	case t = <-idle:
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
	case idle <- t:
	default: // it lasts, and nobody asks it again
	}
}

// thread is one of the system that does what it is sent.
type thread chan func()

var idle = make(chan thread, 8)

func (t thread) run() {
	runtime.LockOSThread() // it is never unlocked, and the loop never ends: so the thread stays
	for do := range t {
		do()
	}
}

// After runs a command once this process has ended, for what it cannot start itself. Nothing is
// heard of it: it is for what is to be gone, and is so already where the process could clean up.
func After(name string, args ...string) error {
	cmd := exec.Command("sh", append([]string{"-c", `cat >/dev/null; exec "$@" >/dev/null 2>&1`, "sh", name}, args...)...)
	apart(cmd)
	open, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return fmt.Errorf("preparing for the end of this process: %w", err)
	}
	kept.Lock()
	defer kept.Unlock()
	kept.pipes = append(kept.pipes, open)
	return nil
}

// kept are the pipes that the system closes with this process; an unused one would be closed
// before.
var kept struct {
	sync.Mutex
	pipes []io.Closer
}
