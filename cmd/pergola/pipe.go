// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"github.com/mattn/go-isatty"
	"github.com/spf13/cobra"
)

// interruptOnClosedOutput interrupts a command when its output is closed (| head). It must not end
// at once, as SIGPIPE would, because it releases leases and records what it sent.
func interruptOnClosedOutput(root *cobra.Command, signals chan<- os.Signal) {
	// Only ignore the signal: signal.Notify would also report every broken connection.
	signal.Ignore(syscall.SIGPIPE)
	broken := sync.OnceFunc(func() { signals <- syscall.SIGPIPE })
	if !isatty.IsTerminal(os.Stdout.Fd()) {
		root.SetOut(pipe{os.Stdout, broken})
	}
	if !isatty.IsTerminal(os.Stderr.Fd()) {
		root.SetErr(pipe{os.Stderr, broken})
	}
}

// errOutputClosed is the cause that cancels the context of a command whose output is closed.
var errOutputClosed = errors.New("the output is closed")

// annotationReadOnly annotates commands that only print: they are done when their output is closed.
// Other commands are then incomplete.
const annotationReadOnly = "pergola.dev/reads-only"

// pipe calls broken when a write fails because the reader has closed it.
type pipe struct {
	io.Writer
	onClosed func()
}

func (p pipe) Write(data []byte) (int, error) {
	n, err := p.Writer.Write(data)
	if errors.Is(err, syscall.EPIPE) {
		p.onClosed()
		return n, outputClosedError{err}
	}
	return n, err
}

// outputClosedError is a closed output, which is not a failure of the command. Connections to
// clusters break with the same error number, and that is a failure.
type outputClosedError struct{ error }

func (e outputClosedError) Unwrap() error { return e.error }
