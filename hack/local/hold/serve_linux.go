// SPDX-License-Identifier: Apache-2.0

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

// A holder reports the result of its start to its parent in this file.
const (
	statusFD     = 3
	statusReady  = "ready"
	statusExists = "exists"
)

// InitHolder runs the holder if this process was started as one, and then does not return. It must
// be called first in main or TestMain; programs with commands call Serve instead.
func InitHolder() {
	if len(os.Args) < 2 || os.Args[1] != holdSubcommand || os.Getpid() != 1 {
		return
	}
	if err := Serve(os.Args[2:]); err != nil {
		fmt.Fprintf(os.Stderr, "error: %s\n", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// Serve runs the holder and returns when all processes inside have ended. args follow "hold" as
// Ensure and Possible pass them: a state folder, or --try.
func Serve(args []string) error {
	if os.Getpid() != 1 || len(args) != 1 {
		return errors.New("other commands start a holder: do not start it manually")
	}
	status := os.NewFile(statusFD, "status")
	if _, err := status.Stat(); err != nil {
		return errors.New("other commands start a holder: do not start it manually")
	}
	unix.CloseOnExec(statusFD)
	closeInherited(statusFD + 1)
	if args[0] == tryFlag {
		return reportStart(status, checkNamespaces(), statusReady)
	}
	server, err := newServer(args[0])
	if errors.Is(err, errHolderRunning) {
		return reportStart(status, nil, statusExists)
	}
	if err := reportStart(status, err, statusReady); err != nil {
		return err
	}
	server.serve()
	return nil
}

// reportStart sends the error, or else the word, to the parent and returns the error.
func reportStart(status *os.File, err error, word string) error {
	if err != nil {
		word = err.Error()
	}
	_, writeErr := status.WriteString(word)
	return errors.Join(err, writeErr, status.Close())
}

// server is the running holder.
type server struct {
	dir      string
	listener *net.UnixListener
	record   *os.File
	children *children
	relays   *relays
	// stopRequests receives the grace of the first Stop request.
	stopRequests chan time.Duration
	// ctx ends when the holder must end.
	ctx    context.Context
	cancel context.CancelFunc
	// sigterm receives SIGTERM.
	sigterm chan os.Signal
}

// newServer locks the folder and sets the namespaces up.
func newServer(dir string) (*server, error) {
	s := &server{dir: dir, children: newChildren(), stopRequests: make(chan time.Duration, 1), sigterm: make(chan os.Signal, 1)}
	// The holder outlives its terminal, so it must not end on the terminal's signals. It catches
	// them: commands would inherit an ignored signal.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP, syscall.SIGINT)
	signal.Notify(s.sigterm, syscall.SIGTERM)
	// The old /proc has the process id outside.
	outside, err := os.Readlink("/proc/self")
	if err != nil {
		return nil, fmt.Errorf("reading own process id: %w", err)
	}
	if s.record, err = writeRecord(dir, outside); err != nil {
		return nil, err
	}
	if err := setUpNamespaces(); err != nil {
		removeFiles(dir)
		return nil, err
	}
	if s.listener, err = listen(dir); err != nil {
		removeFiles(dir)
		return nil, err
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.relays = newRelays(s.ctx, maxConnections())
	s.relays.isInside = true
	s.children.reap()
	return s, nil
}

// listen creates the socket; an existing one was left by a killed holder.
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
	// The name becomes invalid: the folder is closed.
	listener.SetUnlinkOnClose(false)
	return listener, nil
}

// serve returns when all processes inside have ended.
func (s *server) serve() {
	go s.accept()
	grace := defaultGrace
	select {
	case grace = <-s.stopRequests:
	case <-s.sigterm:
	case <-s.watchRecord():
		log.Printf("the record was deleted: no command can find this holder")
	}
	s.cancel()
	s.signalAll(syscall.SIGTERM, grace)
	s.signalAll(syscall.SIGKILL, defaultGrace)
	if !isReplaced(s.record, filepath.Join(s.dir, recordFile)) {
		removeFiles(s.dir)
	}
	// The kernel kills the remaining processes when this one ends.
}

// watchRecord returns a channel that is closed when the state folder is removed: otherwise the
// processes would run forever.
func (s *server) watchRecord() <-chan struct{} {
	const interval = time.Second
	gone := make(chan struct{})
	go func() {
		for {
			select {
			case <-time.After(interval):
			case <-s.ctx.Done():
				return
			}
			if isReplaced(s.record, filepath.Join(s.dir, recordFile)) {
				close(gone)
				return
			}
		}
	}()
	return gone
}

// signalAll sends the signal to all other processes and waits for their end.
func (s *server) signalAll(signal syscall.Signal, wait time.Duration) {
	const poll = 5 * time.Millisecond
	_ = syscall.Kill(-1, signal)
	for deadline := time.Now().Add(wait); time.Now().Before(deadline); time.Sleep(poll) {
		if errors.Is(syscall.Kill(-1, 0), syscall.ESRCH) {
			return
		}
		if signal == syscall.SIGKILL {
			// A process that was forking is killed by the next signal.
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
	// A client sends at once; a silent client must not hold memory forever.
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
		answer, files = s.runCommand(conn, asked, files)
	case asked.Op == opForward && len(files) == 1:
		listener := os.NewFile(uintptr(files[0]), "listener "+strconv.Itoa(asked.Port))
		files = nil
		answer = toResponse(s.relays.listen(asked.Port, asked.To, listener))
		_ = listener.Close()
	case asked.Op == opForward:
		answer.NeedListener = !s.relays.setTarget(asked.Port, asked.To)
	case asked.Op == opUnforward:
		s.relays.remove(asked.Port)
	case asked.Op == opList:
		answer.Forwardings = s.relays.list()
	case asked.Op == opResolver:
		s.relays.setResolver(asked.Resolver)
	case asked.Op == opStop:
		select {
		case s.stopRequests <- asked.Grace:
		default:
		}
	case asked.Op != opPing:
		answer.Error = fmt.Sprintf("unknown request %q: this holder was started by another version", asked.Op)
	}
	if err := send(conn, answer); err != nil && !errors.Is(err, syscall.EPIPE) {
		log.Printf("answering %s: %v", asked.Op, err)
	}
}

func toResponse(err error) response {
	if err != nil {
		return response{Error: err.Error()}
	}
	return response{}
}

// runCommand runs a command until it ends. The caller must close the returned files.
func (s *server) runCommand(conn *net.UnixConn, asked request, files []int) (response, []int) {
	if len(files) != 3 {
		return response{Error: fmt.Sprintf("a command needs three files, and %d arrived", len(files))}, files
	}
	stdio := make([]uintptr, len(files))
	for i, file := range files {
		stdio[i] = uintptr(file)
	}
	pid, ended, err := s.children.start(asked.Path, append([]string{asked.Path}, asked.Args...), &syscall.ProcAttr{
		Dir: asked.Dir, Env: append([]string{}, asked.Env...), Files: stdio,
		// Signals to this group include children of the command, but not detached ones.
		Sys: &syscall.SysProcAttr{Setpgid: true},
	})
	// Readers of the command's output must see its end.
	closeAll(files)
	if err != nil {
		return response{Error: fmt.Sprintf("starting %s: %s", asked.Path, err)}, nil
	}
	interrupted := make(chan struct{})
	go func() {
		// The client sends an interrupt, or has disconnected.
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

// exitCode returns the exit code as a shell reports it.
func exitCode(status syscall.WaitStatus) int {
	if status.Signaled() {
		return 128 + int(status.Signal())
	}
	return status.ExitStatus()
}
