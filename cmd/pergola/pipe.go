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

// endWithReaders interrupts a command when its output is closed (| head). It must not end at once,
// as SIGPIPE would, because it releases leases and records what it sent.
func endWithReaders(root *cobra.Command, signals chan<- os.Signal) {
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

// errUnread is the cause that cancels the context of a command whose output is closed.
var errUnread = errors.New("nobody reads the output")

// readsOnly annotates commands that only print: they are done when their output is closed. Other
// commands are then incomplete.
const readsOnly = "pergola.dev/reads-only"

// pipe calls broken when a write fails because the reader has closed it.
type pipe struct {
	io.Writer
	broken func()
}

func (p pipe) Write(data []byte) (int, error) {
	n, err := p.Writer.Write(data)
	if errors.Is(err, syscall.EPIPE) {
		p.broken()
		return n, notReadError{err}
	}
	return n, err
}

// notReadError is a closed output, which is not a failure of the command. Connections to clusters
// break with the same error number, and that is a failure.
type notReadError struct{ error }

func (e notReadError) Unwrap() error { return e.error }
