// SPDX-License-Identifier: Apache-2.0

package hold

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// Holder is a client of a running holder process.
type Holder struct {
	dir string
	pid int
}

var (
	errEnding = errors.New("the namespaces are ending")
	errEnded  = errors.New("the namespaces have ended")
)

// Find returns the holder of the state folder, or nil if none runs. It removes files left by a
// killed holder.
func Find(dir string) (*Holder, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("resolving state folder: %w", err)
	}
	pid, lives, err := readRecord(dir)
	if err != nil || !lives {
		return nil, err
	}
	return &Holder{dir: dir, pid: pid}, nil
}

// PID is the process id of the holder as the caller sees it; inside it is 1.
func (h *Holder) PID() int { return h.pid }

// connect waits for the socket of a starting holder.
func (h *Holder) connect(ctx context.Context) (*net.UnixConn, error) {
	const attempts, pause = 200, 10 * time.Millisecond
	for attempt := 1; ; attempt++ {
		conn, err := h.connectOnce(ctx)
		if err == nil || attempt == attempts || ctx.Err() != nil {
			return conn, err
		}
		if _, lives, recordErr := readRecord(h.dir); recordErr == nil && !lives {
			return nil, errEnded
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
	}
}

func (h *Holder) connectOnce(ctx context.Context) (*net.UnixConn, error) {
	folder, err := os.Open(h.dir)
	if err != nil {
		return nil, fmt.Errorf("opening state folder: %w", err)
	}
	defer folder.Close()
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", socketPath(folder))
	if err != nil {
		return nil, fmt.Errorf("connecting to the holder of %s (process %d): %w", h.dir, h.pid, err)
	}
	user, err := peerUser(conn.(*net.UnixConn))
	if err == nil && user != uint32(os.Geteuid()) {
		err = fmt.Errorf("the namespaces of %s belong to user %d", h.dir, user)
	}
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	return conn.(*net.UnixConn), nil
}

// roundTrip sends one request with files and waits for the answer.
func (h *Holder) roundTrip(ctx context.Context, what request, files ...uintptr) (response, error) {
	const patience = 20 * time.Second
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	conn, err := h.connect(ctx)
	if err != nil {
		return response{}, err
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	answer, err := exchange(conn, what, files...)
	if ctx.Err() != nil && err != nil {
		return response{}, fmt.Errorf("waiting for the holder of %s (process %d): %w", h.dir, h.pid, context.Cause(ctx))
	}
	return answer, err
}

func exchange(conn *net.UnixConn, what request, files ...uintptr) (response, error) {
	if err := send(conn, what, files...); err != nil {
		return response{}, err
	}
	return awaitResponse(conn)
}

func awaitResponse(conn *net.UnixConn) (response, error) {
	var answer response
	unwanted, err := receive(conn, &answer)
	closeAll(unwanted)
	switch {
	case errors.Is(err, io.EOF) || errors.Is(err, unix.ECONNRESET):
		return response{}, errEnded
	case err != nil:
		return response{}, err
	case answer.Ending:
		return response{}, errEnding
	case answer.Error != "":
		return response{}, errors.New(answer.Error)
	}
	return answer, nil
}

// Run runs a command inside and returns its exit code, or 128 plus the signal that ended it. When
// ctx ends or the caller dies, the command gets SIGINT, then SIGKILL after its grace. Run returns
// only when the command has ended. Processes that the command detached (in their own sessions) live
// until the holder ends.
func (h *Holder) Run(ctx context.Context, command Command) (int, error) {
	what := request{Op: opRun, Path: command.Path, Args: command.Args, Env: command.Env, Dir: command.Dir, Grace: command.Grace}
	if what.Grace <= 0 {
		what.Grace = defaultGrace
	}
	if what.Dir == "" {
		dir, err := os.Getwd()
		if err != nil {
			return 0, fmt.Errorf("finding the working folder: %w", err)
		}
		what.Dir = dir
	}
	files := make([]uintptr, 0, maxFiles)
	for _, file := range []*os.File{command.Stdin, command.Stdout, command.Stderr} {
		if file == nil {
			null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
			if err != nil {
				return 0, fmt.Errorf("opening %s: %w", os.DevNull, err)
			}
			defer null.Close()
			file = null
		}
		files = append(files, file.Fd())
	}
	conn, err := h.connect(ctx)
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	if err := send(conn, what, files...); err != nil {
		return 0, err
	}
	stop := context.AfterFunc(ctx, func() { _ = send(conn, request{}) })
	defer stop()
	answer, err := awaitResponse(conn)
	runtime.KeepAlive(command)
	if err != nil {
		return 0, fmt.Errorf("running %s: %w", command.Path, err)
	}
	return answer.Code, nil
}

// Stop ends all processes inside: SIGTERM first, SIGKILL after ten seconds or when ctx is done. It
// returns when the last process has ended.
func (h *Holder) Stop(ctx context.Context) error {
	process, err := h.openPIDFD()
	if err != nil || process < 0 {
		return err
	}
	defer unix.Close(process)
	grace := defaultGrace
	if deadline, limited := ctx.Deadline(); limited {
		grace = max(0, min(grace, time.Until(deadline)))
	}
	_, err = h.roundTrip(ctx, request{Op: opStop, Grace: grace})
	if err == nil || errors.Is(err, errEnded) || errors.Is(err, errEnding) {
		// The holder itself kills processes that ignore SIGTERM.
		const more = 5 * time.Second
		patience, cancel := context.WithTimeout(ctx, grace+more)
		defer cancel()
		err = awaitEnd(patience, process)
	}
	if err != nil {
		// The holder hangs, or ctx is done: the kernel ends all processes inside with it.
		if err := unix.PidfdSendSignal(process, unix.SIGKILL, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
			return fmt.Errorf("killing the holder of %s (process %d): %w", h.dir, h.pid, err)
		}
		patience, cancel := context.WithTimeout(context.Background(), defaultGrace)
		defer cancel()
		if err := awaitEnd(patience, process); err != nil {
			return fmt.Errorf("the holder of %s (process %d) does not end even after SIGKILL: %w", h.dir, h.pid, err)
		}
	}
	_, _, err = readRecord(h.dir) // removes files left by a killed holder
	return err
}

// waitForEnd returns when the holder, and so all processes inside, have ended.
func (h *Holder) waitForEnd(ctx context.Context) error {
	process, err := h.openPIDFD()
	if err != nil || process < 0 {
		return err
	}
	defer unix.Close(process)
	return awaitEnd(ctx, process)
}

// openPIDFD returns a pidfd of the holder, or -1 if the holder has ended.
func (h *Holder) openPIDFD() (int, error) {
	if h.pid == 0 {
		return -1, fmt.Errorf("the holder of %s cannot be seen from this process-id namespace", h.dir)
	}
	process, err := unix.PidfdOpen(h.pid, 0)
	if errors.Is(err, unix.ESRCH) {
		return -1, nil
	}
	if err != nil {
		return -1, fmt.Errorf("opening the holder of %s (process %d): %w", h.dir, h.pid, err)
	}
	// The id may be reused, but not while the holder locks the record.
	if pid, lives, err := readRecord(h.dir); err == nil && lives && pid == h.pid {
		return process, nil
	}
	_ = unix.Close(process)
	return -1, nil
}

// awaitEnd waits for the end of a process.
func awaitEnd(ctx context.Context, process int) error {
	const slice = 50 // milliseconds between checks of ctx
	for {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(process), Events: unix.POLLIN}}, slice)
		if err != nil && !errors.Is(err, unix.EINTR) {
			return fmt.Errorf("waiting for a process: %w", err)
		}
		if n > 0 {
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
}
