// SPDX-License-Identifier: Apache-2.0

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
	child        [3]*os.File
	filesToClose []*os.File // part of child, to be closed once the process has them
	input        *os.File
	outputs      []*os.File
	copyFuncs    []func()
	copying      sync.WaitGroup
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
	if s.child[0], err = s.openInput(stdin); err != nil {
		return err
	}
	if s.child[1], err = s.openOutput(stdout); err != nil {
		return err
	}
	if isSameWriter(stdout, stderr) {
		s.child[2] = s.child[1]
		return nil
	}
	s.child[2], err = s.openOutput(stderr)
	return err
}

// isSameWriter reports whether both are the same Writer, so their lines stay in order.
func isSameWriter(a, b io.Writer) (equal bool) {
	// A Writer's type need not be comparable.
	defer func() { _ = recover() }()
	return a != nil && a == b
}

func (s *streams) openInput(from io.Reader) (*os.File, error) {
	switch from := from.(type) {
	case nil:
		return s.openNull(os.O_RDONLY)
	case *os.File:
		return from, nil
	}
	ours, err := s.pipe(func(read, write *os.File) (*os.File, *os.File) { return write, read })
	if err != nil {
		return nil, err
	}
	s.input = ours
	// Nothing waits for this goroutine: it may block in Read forever.
	s.copyFuncs = append(s.copyFuncs, func() {
		go func() {
			_, _ = io.Copy(ours, from)
			_ = ours.Close()
		}()
	})
	return s.filesToClose[len(s.filesToClose)-1], nil
}

func (s *streams) openOutput(to io.Writer) (*os.File, error) {
	switch to := to.(type) {
	case nil:
		return s.openNull(os.O_WRONLY)
	case *os.File:
		return to, nil
	}
	ours, err := s.pipe(func(read, write *os.File) (*os.File, *os.File) { return read, write })
	if err != nil {
		return nil, err
	}
	s.outputs = append(s.outputs, ours)
	s.copyFuncs = append(s.copyFuncs, func() {
		s.copying.Go(func() { _, _ = io.Copy(errorIgnoringWriter{to}, ours) })
	})
	return s.filesToClose[len(s.filesToClose)-1], nil
}

func (s *streams) openNull(flag int) (*os.File, error) {
	file, err := os.OpenFile(os.DevNull, flag, 0)
	if err == nil {
		s.filesToClose = append(s.filesToClose, file)
	}
	return file, err
}

func (s *streams) pipe(sides func(read, write *os.File) (ours, theirs *os.File)) (*os.File, error) {
	read, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	ours, theirs := sides(read, write)
	s.filesToClose = append(s.filesToClose, theirs)
	// Go's own pipes are non-blocking, which other programs do not expect.
	return ours, unix.SetNonblock(int(theirs.Fd()), false)
}

// startCopying must be called when the process has its files.
func (s *streams) startCopying() {
	s.closeOpenedFiles()
	for _, start := range s.copyFuncs {
		start()
	}
}

// finishCopying must be called when the process has ended. It returns when all output is copied.
func (s *streams) finishCopying() {
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
	s.closeOpenedFiles()
	if s.input != nil {
		_ = s.input.Close()
	}
	s.closeOutputs()
}

func (s *streams) closeOpenedFiles() {
	for _, file := range s.filesToClose {
		_ = file.Close()
	}
	s.filesToClose = nil
}

func (s *streams) closeOutputs() {
	for _, file := range s.outputs {
		_ = file.Close()
	}
}

// errorIgnoringWriter ignores write errors: a full disk must not end the process that logs to it.
type errorIgnoringWriter struct{ to io.Writer }

func (p errorIgnoringWriter) Write(data []byte) (int, error) {
	_, _ = p.to.Write(data)
	return len(data), nil
}
