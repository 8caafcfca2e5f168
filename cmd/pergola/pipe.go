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

// endWithReaders makes a command end as if it were interrupted when nobody reads its output any
// more (| head): at once, as SIGPIPE would, it must not end, since it gives leases back and records
// what it sent.
func endWithReaders(root *cobra.Command, signals chan<- os.Signal) {
	// Only the default of the signal is given up: to be notified of it would tell of every broken
	// connection, too.
	signal.Ignore(syscall.SIGPIPE)
	broken := sync.OnceFunc(func() { signals <- syscall.SIGPIPE })
	if !isatty.IsTerminal(os.Stdout.Fd()) {
		root.SetOut(pipe{os.Stdout, broken})
	}
	if !isatty.IsTerminal(os.Stderr.Fd()) {
		root.SetErr(pipe{os.Stderr, broken})
	}
}

// errUnread is the cause with which the context of a command ends when nobody reads its output any
// more.
var errUnread = errors.New("nobody reads the output")

// readsOnly annotates commands that only print: they are done when nobody reads that any more.
// Others leave something undone.
const readsOnly = "pergola.dev/reads-only"

// pipe tells when nobody reads what is written to it any more.
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

// notReadError says that nobody reads the output any more, which is no failure of the command.
// Connections to clusters break with the same error number, and that is one.
type notReadError struct{ error }

func (e notReadError) Unwrap() error { return e.error }
