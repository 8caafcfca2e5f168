// SPDX-License-Identifier: Apache-2.0

package box

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"sync"
	"syscall"
)

var errInitChildNotCalled = errors.New("main has not called box.Become")

// Start creates a box and runs its command. It returns nil once the command is executed. The box
// ends with this process at the latest.
func Start(spec Spec) (*Process, error) {
	process, err := start(childRequest{Spec: spec})
	if err != nil {
		name := ""
		if len(spec.Args) > 0 {
			name = spec.Args[0]
		}
		return nil, fmt.Errorf("starting %q in its box: %w", name, err)
	}
	return process, nil
}

func start(request childRequest) (*Process, error) {
	if !isInitChildCalled {
		return nil, errInitChildNotCalled
	}
	if err := request.Spec.check(); err != nil {
		return nil, err
	}
	files, err := openStreams(request.Spec.Stdin, request.Spec.Stdout, request.Spec.Stderr)
	if err != nil {
		return nil, err
	}
	talk, err := openChildPipes()
	if err != nil {
		files.close()
		return nil, err
	}
	attributes := &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWUTS | syscall.CLONE_NEWIPC,
		Pdeathsig:  syscall.SIGKILL,
		Setsid:     true,
	}
	ownUser := isUserNamespaceNeeded()
	if ownUser {
		attributes.Cloneflags |= syscall.CLONE_NEWUSER
		attributes.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}}
		attributes.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}}
	}
	child, err := forkOnStarterThread([]string{childName, roleStart}, &os.ProcAttr{
		Dir:   "/",
		Env:   childEnv,
		Files: []*os.File{files.child[0], files.child[1], files.child[2], talk.orderIn, talk.answerOut},
		Sys:   attributes,
	})
	if err != nil {
		files.close()
		talk.close()
		return nil, fmt.Errorf("creating namespaces: %w", withoutPath(err))
	}
	files.startCopying()
	if err := talk.exchange(request); err != nil {
		// The child has reported an error and ends, or it does not answer.
		_ = child.Kill()
		_, _ = child.Wait()
		files.finishCopying()
		return nil, err
	}
	process := &Process{spec: request.Spec, hasUserNamespace: ownUser, child: child, done: make(chan struct{})}
	go process.awaitEnd(files)
	return process, nil
}

// starterThread is the thread that forks all boxes. The kernel sends the parent-death signal when
// the *thread* that forked ends, and only this thread lives as long as the process.
var starterThread = sync.OnceValue(func() chan<- func() {
	request := make(chan func())
	go func() {
		runtime.LockOSThread()
		for do := range request {
			do()
		}
	}()
	return request
})

func forkOnStarterThread(args []string, attributes *os.ProcAttr) (child *os.Process, err error) {
	forked := make(chan struct{})
	starterThread() <- func() {
		defer close(forked)
		child, err = os.StartProcess("/proc/self/exe", args, attributes)
	}
	<-forked
	return child, err
}

// withoutPath removes this program's path from an error of executing it: it is never the cause.
func withoutPath(err error) error {
	var errno syscall.Errno
	if errors.As(err, &errno) {
		return errno
	}
	return err
}

// childPipes has the pipes for the child's order and answer.
type childPipes struct{ orderIn, orderOut, answerIn, answerOut *os.File }

func openChildPipes() (*childPipes, error) {
	t := &childPipes{}
	var err error
	if t.orderIn, t.orderOut, err = os.Pipe(); err == nil {
		t.answerIn, t.answerOut, err = os.Pipe()
	}
	if err != nil {
		t.close()
		return nil, fmt.Errorf("opening pipes: %w", err)
	}
	return t, nil
}

// exchange sends the order and returns when the child executes its command or has reported an
// error.
func (t *childPipes) exchange(request childRequest) error {
	defer t.close()
	_ = t.orderIn.Close()
	_ = t.answerOut.Close()
	// A child that ended before reading the order has reported why, or its answer is missing below.
	_ = json.NewEncoder(t.orderOut).Encode(request)
	_ = t.orderOut.Close()
	said, err := io.ReadAll(t.answerIn)
	if err != nil {
		return fmt.Errorf("reading the answer: %w", err)
	}
	ready := false
	for decoder := json.NewDecoder(strings.NewReader(string(said))); decoder.More(); {
		var one childResponse
		if err := decoder.Decode(&one); err != nil {
			return fmt.Errorf("reading the answer: %w", err)
		}
		if one.Error != "" {
			return &setUpError{text: one.Error, errno: one.Errno}
		}
		ready = ready || one.Ready
	}
	if !ready {
		return errors.New("it ended before it could run its command")
	}
	return nil
}

func (t *childPipes) close() {
	for _, file := range []*os.File{t.orderIn, t.orderOut, t.answerIn, t.answerOut} {
		_ = file.Close() // nil and closed files are fine
	}
}
