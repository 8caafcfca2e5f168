package box

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// drainTime is how long output is still copied after a process has ended: its orphans may hold the
// pipe open.
const drainTime = 2 * time.Second

// streams are the standard files of a process and the goroutines that copy them.
type streams struct {
	child   [3]*os.File
	opened  []*os.File // part of child, to be closed once the process has them
	input   *os.File
	outputs []*os.File
	copiers []func()
	copying sync.WaitGroup
}

func openStreams(stdin io.Reader, stdout, stderr io.Writer) (*streams, error) {
	s := &streams{}
	err := s.open(stdin, stdout, stderr)
	if err != nil {
		s.close()
		return nil, fmt.Errorf("opening standard files: %w", err)
	}
	return s, nil
}

func (s *streams) open(stdin io.Reader, stdout, stderr io.Writer) (err error) {
	if s.child[0], err = s.reads(stdin); err != nil {
		return err
	}
	if s.child[1], err = s.writes(stdout); err != nil {
		return err
	}
	if same(stdout, stderr) {
		s.child[2] = s.child[1]
		return nil
	}
	s.child[2], err = s.writes(stderr)
	return err
}

// same reports whether both are the same Writer, so that their lines stay in order.
func same(a, b io.Writer) (equal bool) {
	// A Writer's type need not be comparable.
	defer func() { _ = recover() }()
	return a != nil && a == b
}

func (s *streams) reads(from io.Reader) (*os.File, error) {
	switch from := from.(type) {
	case nil:
		return s.null(os.O_RDONLY)
	case *os.File:
		return from, nil
	}
	ours, err := s.pipe(func(read, write *os.File) (*os.File, *os.File) { return write, read })
	if err != nil {
		return nil, err
	}
	s.input = ours
	// Nothing waits for this goroutine: it may block in Read forever.
	s.copiers = append(s.copiers, func() {
		go func() {
			_, _ = io.Copy(ours, from)
			_ = ours.Close()
		}()
	})
	return s.opened[len(s.opened)-1], nil
}

func (s *streams) writes(to io.Writer) (*os.File, error) {
	switch to := to.(type) {
	case nil:
		return s.null(os.O_WRONLY)
	case *os.File:
		return to, nil
	}
	ours, err := s.pipe(func(read, write *os.File) (*os.File, *os.File) { return read, write })
	if err != nil {
		return nil, err
	}
	s.outputs = append(s.outputs, ours)
	s.copiers = append(s.copiers, func() {
		s.copying.Go(func() { _, _ = io.Copy(patient{to}, ours) })
	})
	return s.opened[len(s.opened)-1], nil
}

func (s *streams) null(flag int) (*os.File, error) {
	file, err := os.OpenFile(os.DevNull, flag, 0)
	if err == nil {
		s.opened = append(s.opened, file)
	}
	return file, err
}

func (s *streams) pipe(sides func(read, write *os.File) (ours, theirs *os.File)) (*os.File, error) {
	read, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	ours, theirs := sides(read, write)
	s.opened = append(s.opened, theirs)
	// Go's own pipes are non-blocking, which other programs do not expect.
	return ours, unix.SetNonblock(int(theirs.Fd()), false)
}

// started must be called when the process has its files.
func (s *streams) started() {
	s.closeOpened()
	for _, start := range s.copiers {
		start()
	}
}

// ended must be called when the process has ended. It returns when all output is copied.
func (s *streams) ended() {
	if s.input != nil {
		_ = s.input.Close()
	}
	late := time.AfterFunc(drainTime, s.closeOutputs)
	s.copying.Wait()
	late.Stop()
	s.closeOutputs()
}

// close is called instead of started if there is no process.
func (s *streams) close() {
	s.closeOpened()
	if s.input != nil {
		_ = s.input.Close()
	}
	s.closeOutputs()
}

func (s *streams) closeOpened() {
	for _, file := range s.opened {
		_ = file.Close()
	}
	s.opened = nil
}

func (s *streams) closeOutputs() {
	for _, file := range s.outputs {
		_ = file.Close()
	}
}

// patient ignores write errors: a full disk must not end the process that logs to it.
type patient struct{ to io.Writer }

func (p patient) Write(data []byte) (int, error) {
	_, _ = p.to.Write(data)
	return len(data), nil
}
