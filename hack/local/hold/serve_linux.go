package hold

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// The parent of a holder reads from this file how its start went.
const (
	statusFD     = 3
	statusReady  = "ready"
	statusExists = "exists"
)

// Become makes a program a holder when it was started as one, and does not return then. It is for
// the start of main, or of TestMain; a program with commands calls Serve instead.
func Become() {
	if len(os.Args) < 2 || os.Args[1] != subcommand || os.Getpid() != 1 {
		return
	}
	if err := Serve(os.Args[2:]); err != nil {
		fmt.Fprintf(os.Stderr, "error: %s\n", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// Serve is the holder: it returns when all processes inside have ended. The arguments are those
// after "hold" as Ensure and Possible give them: a state folder, or --try.
func Serve(args []string) error {
	if os.Getpid() != 1 || len(args) != 1 {
		return errors.New("a holder is started by other commands, not by hand")
	}
	status := os.NewFile(statusFD, "status")
	if _, err := status.Stat(); err != nil {
		return errors.New("a holder is started by other commands, not by hand")
	}
	unix.CloseOnExec(statusFD)
	closeInherited(statusFD + 1)
	if args[0] == tryFlag {
		return report(status, tryOut(), statusReady)
	}
	server, err := newServer(args[0])
	if errors.Is(err, errRuns) {
		return report(status, nil, statusExists)
	}
	if err := report(status, err, statusReady); err != nil {
		return err
	}
	server.serve()
	return nil
}

// report tells the parent the error, or else the word, and returns the error.
func report(status *os.File, err error, word string) error {
	if err != nil {
		word = err.Error()
	}
	_, writeErr := status.WriteString(word)
	return errors.Join(err, writeErr, status.Close())
}

// server is the holder at work.
type server struct {
	dir      string
	listener *net.UnixListener
	record   *os.File
	children *children
	relays   *relays
	// stop takes how long the processes inside have to end, from the first who asks.
	stop chan time.Duration
	// ctx ends when the holder is told to end.
	ctx    context.Context
	cancel context.CancelFunc
	// ended takes SIGTERM.
	ended chan os.Signal
}

// newServer takes the folder and sets the namespaces up.
func newServer(dir string) (*server, error) {
	s := &server{dir: dir, children: newChildren(), stop: make(chan time.Duration, 1), ended: make(chan os.Signal, 1)}
	// A terminal's signals are not for a process that outlives it. Taken and not ignored: commands
	// would inherit that.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP, syscall.SIGINT)
	signal.Notify(s.ended, syscall.SIGTERM)
	// The old /proc knows what we are called outside.
	outside, err := os.Readlink("/proc/self")
	if err != nil {
		return nil, fmt.Errorf("reading own process id: %w", err)
	}
	if s.record, err = writeRecord(dir, outside); err != nil {
		return nil, err
	}
	if err := setUp(); err != nil {
		removeFiles(dir)
		return nil, err
	}
	if s.listener, err = listen(dir); err != nil {
		removeFiles(dir)
		return nil, err
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.relays = newRelays(s.ctx, maxConnections())
	s.relays.within = true
	s.children.reap()
	return s, nil
}

// listen makes the socket; one that is there is of a holder that was killed.
func listen(dir string) (*net.UnixListener, error) {
	folder, err := os.Open(dir)
	if err != nil {
		return nil, fmt.Errorf("opening state folder: %w", err)
	}
	defer folder.Close()
	if err := os.Remove(filepath.Join(dir, socketFile)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("removing socket of an earlier holder: %w", err)
	}
	before := unix.Umask(0o177)
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: socketPath(folder), Net: "unix"})
	unix.Umask(before)
	if err != nil {
		return nil, fmt.Errorf("listening on %s: %w", filepath.Join(dir, socketFile), err)
	}
	// Its name would not be right any more: the folder is closed.
	listener.SetUnlinkOnClose(false)
	return listener, nil
}

// serve returns when all processes inside have ended.
func (s *server) serve() {
	go s.accept()
	grace := defaultGrace
	select {
	case grace = <-s.stop:
	case <-s.ended:
	case <-s.abandoned():
		log.Printf("the record is gone: nobody could find this holder any more")
	}
	s.cancel()
	s.endAll(syscall.SIGTERM, grace)
	s.endAll(syscall.SIGKILL, defaultGrace)
	if !isElsewhere(s.record, filepath.Join(s.dir, recordFile)) {
		removeFiles(s.dir)
	}
	// What is still left, the kernel ends with us.
}

// abandoned tells when somebody has removed the state folder: what runs here would be left for
// ever.
func (s *server) abandoned() <-chan struct{} {
	const interval = time.Second
	gone := make(chan struct{})
	go func() {
		for {
			select {
			case <-time.After(interval):
			case <-s.ctx.Done():
				return
			}
			if isElsewhere(s.record, filepath.Join(s.dir, recordFile)) {
				close(gone)
				return
			}
		}
	}()
	return gone
}

// endAll sends the signal to all other processes and waits for their end.
func (s *server) endAll(signal syscall.Signal, wait time.Duration) {
	const poll = 5 * time.Millisecond
	_ = syscall.Kill(-1, signal)
	for deadline := time.Now().Add(wait); time.Now().Before(deadline); time.Sleep(poll) {
		if errors.Is(syscall.Kill(-1, 0), syscall.ESRCH) {
			return
		}
		if signal == syscall.SIGKILL {
			// Who was just forking is caught the next time.
			_ = syscall.Kill(-1, signal)
		}
	}
}

func (s *server) accept() {
	pause := backOff{}
	for {
		conn, err := s.listener.AcceptUnix()
		if err != nil {
			log.Printf("accepting requests: %v", err)
			pause.wait(s.ctx)
			continue
		}
		pause.reset()
		go s.handle(conn)
	}
}

// handle answers one request.
func (s *server) handle(conn *net.UnixConn) {
	defer conn.Close()
	if user, err := peerUser(conn); err != nil || user != uint32(os.Geteuid()) {
		log.Printf("a connection of user %d was refused: %v", user, err)
		return
	}
	var asked request
	// A client sends at once; one that does not must not cost memory for ever.
	_ = conn.SetReadDeadline(time.Now().Add(defaultGrace))
	files, err := receive(conn, &asked)
	_ = conn.SetReadDeadline(time.Time{})
	defer func() { closeAll(files) }()
	answer := response{}
	switch {
	case errors.Is(err, io.EOF):
		return
	case err != nil:
		answer.Error = err.Error()
	case s.ctx.Err() != nil:
		answer.Ending = true
	case asked.Op == opRun:
		answer, files = s.run(conn, asked, files)
	case asked.Op == opForward && len(files) == 1:
		listener := os.NewFile(uintptr(files[0]), "listener "+strconv.Itoa(asked.Port))
		files = nil
		answer = result(s.relays.listen(asked.Port, asked.To, listener))
		_ = listener.Close()
	case asked.Op == opForward:
		answer.NeedListener = !s.relays.redirect(asked.Port, asked.To)
	case asked.Op == opUnforward:
		s.relays.remove(asked.Port)
	case asked.Op == opList:
		answer.Forwardings = s.relays.list()
	case asked.Op == opResolver:
		s.relays.setResolver(asked.Resolver)
	case asked.Op == opStop:
		select {
		case s.stop <- asked.Grace:
		default:
		}
	case asked.Op != opPing:
		answer.Error = fmt.Sprintf("unknown request %q: this holder was started by another version", asked.Op)
	}
	if err := send(conn, answer); err != nil && !errors.Is(err, syscall.EPIPE) {
		log.Printf("answering %s: %v", asked.Op, err)
	}
}

func result(err error) response {
	if err != nil {
		return response{Error: err.Error()}
	}
	return response{}
}

// run runs a command until it ends. The returned files are still to be closed.
func (s *server) run(conn *net.UnixConn, asked request, files []int) (response, []int) {
	if len(files) != 3 {
		return response{Error: fmt.Sprintf("a command needs three files, %d came", len(files))}, files
	}
	stdio := make([]uintptr, len(files))
	for i, file := range files {
		stdio[i] = uintptr(file)
	}
	pid, ended, err := s.children.start(asked.Path, append([]string{asked.Path}, asked.Args...), &syscall.ProcAttr{
		Dir: asked.Dir, Env: append([]string{}, asked.Env...), Files: stdio,
		// A group of its own, so that signals reach what the command has started, and not what it
		// has detached.
		Sys: &syscall.SysProcAttr{Setpgid: true},
	})
	// Who reads from the command must see the end when the command closes them.
	closeAll(files)
	if err != nil {
		return response{Error: fmt.Sprintf("starting %s: %s", asked.Path, err)}, nil
	}
	interrupted := make(chan struct{})
	go func() {
		// The client sends something to interrupt, or is gone.
		defer close(interrupted)
		more, _ := receive(conn, &request{})
		closeAll(more)
	}()
	select {
	case status := <-ended:
		return response{Code: exitCode(status)}, nil
	case <-interrupted:
	}
	s.children.signalGroup(pid, syscall.SIGINT)
	grace := time.NewTimer(asked.Grace)
	defer grace.Stop()
	for {
		select {
		case status := <-ended:
			return response{Code: exitCode(status)}, nil
		case <-grace.C:
			s.children.signalGroup(pid, syscall.SIGKILL)
		}
	}
}

// exitCode is what a shell would say.
func exitCode(status syscall.WaitStatus) int {
	if status.Signaled() {
		return 128 + int(status.Signal())
	}
	return status.ExitStatus()
}
