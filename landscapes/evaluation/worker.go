// SPDX-License-Identifier: Apache-2.0

package evaluation

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"
)

// startTime limits how long a worker takes to be ready.
const startTime = 20 * time.Second

// endReason is the reason why a worker ended.
type endReason int

const (
	endedOtherwise endReason = iota
	endedByMemory
)

// worker is a process that evaluates one package at a time.
type worker struct {
	cmd    *exec.Cmd
	in     *os.File // we write
	out    *os.File // we read
	stderr *prefixBuffer
	// done is closed when the process has ended.
	done chan struct{}

	packages, bytes int
}

// startWorker starts the program and waits until it is ready. The worker gets no kubeconfig, keys
// or proxy from the environment.
func startWorker(ctx context.Context, isolated bool, limits Limits, program string, args []string) (*worker, error) {
	w := &worker{cmd: exec.Command(program, args...), stderr: &prefixBuffer{limit: 4096}, done: make(chan struct{})}
	w.cmd.Dir = os.TempDir()
	w.cmd.Env = []string{"GOTRACEBACK=none", "GOMAXPROCS=2"}
	w.cmd.Stderr = w.stderr
	w.cmd.WaitDelay = time.Second
	isolateProcess(w.cmd, isolated)
	if err := w.launch(); err != nil {
		return nil, err
	}
	starting, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	defer context.AfterFunc(starting, w.kill)()
	var ready string
	err := writeMessage(w.in, limits)
	if err == nil {
		err = readMessage(w.out, &ready)
	}
	if err != nil {
		w.end()
		return nil, errors.Join(fmt.Errorf("the worker did not start: %w", err), starting.Err(), w.startError())
	}
	return w, nil
}

// launch starts the process from a locked thread. The operating system kills a worker when the
// thread that started it ends, so that thread has to outlive the worker.
func (w *worker) launch() error {
	childIn, in, err := os.Pipe()
	if err != nil {
		return err
	}
	out, childOut, err := os.Pipe()
	if err != nil {
		return errors.Join(err, childIn.Close(), in.Close())
	}
	w.in, w.out, w.cmd.Stdin, w.cmd.Stdout = in, out, childIn, childOut
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := w.cmd.Start()
		started <- err
		if err == nil {
			_ = w.cmd.Wait()
			close(w.done)
		}
	}()
	err = <-started
	_, _ = childIn.Close(), childOut.Close()
	if err != nil {
		_, _ = in.Close(), out.Close()
	}
	return err
}

// evaluate sends a package and waits for the result. After an error the worker is unusable.
func (w *worker) evaluate(ctx context.Context, pkg Package) (Result, error) {
	defer context.AfterFunc(ctx, w.kill)()
	w.packages++
	for _, file := range pkg.Files {
		w.bytes += len(file.Data)
	}
	var result Result
	if err := writeMessage(w.in, pkg); err != nil {
		return Result{}, err
	}
	if err := readMessage(w.out, &result); err != nil {
		return Result{}, err
	}
	return result, nil
}

func (w *worker) isAlive() bool {
	select {
	case <-w.done:
		return false
	default:
		return true
	}
}

// kill ends the process; a worker has no children.
func (w *worker) kill() { _ = w.cmd.Process.Kill() }

// end ends the process if it still runs, and otherwise returns why it ended.
func (w *worker) end() endReason {
	// A worker ends when its input is closed.
	_, _ = w.in.Close(), w.out.Close()
	select {
	case <-w.done:
	case <-time.After(100 * time.Millisecond):
		w.kill()
		<-w.done
	}
	text := w.stderr.String()
	if w.cmd.ProcessState.ExitCode() == exitCodeMemory {
		return endedByMemory
	}
	// Messages of the Go runtime, the operating system and the race detector.
	for _, words := range []string{"out of memory", "cannot allocate memory", "failed to allocate"} {
		if strings.Contains(text, words) {
			return endedByMemory
		}
	}
	return endedOtherwise
}

// startError returns the first line of the error output of a worker that did not start.
func (w *worker) startError() error {
	line, _, _ := strings.Cut(strings.TrimSpace(w.stderr.String()), "\n")
	if line == "" {
		return nil
	}
	return errors.New(line)
}

// prefixBuffer stores the first bytes written to it, up to a limit.
type prefixBuffer struct {
	buffer bytes.Buffer
	limit  int
}

func (h *prefixBuffer) Write(data []byte) (int, error) {
	h.buffer.Write(data[:min(len(data), h.limit-h.buffer.Len())])
	return len(data), nil
}

// String must only be called after the process has ended.
func (h *prefixBuffer) String() string { return h.buffer.String() }
