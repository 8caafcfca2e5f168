package cri

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"

	"k8s.io/utils/clock"
)

// logFile writes a container's output line by line in the CRI's format (kubelet-cri-logging.md):
// time, stream, tag, line.
type logFile struct {
	path  string
	clock clock.PassiveClock

	mutex sync.Mutex
	file  *os.File
	// failed is the error of the last write, for example of a full disk. That output is lost, and
	// the container continues.
	failed error
	// first and last are the first and last lines of output, for a failed container's message. Some
	// programs print the error first and then their usage.
	first, last [][]byte
	// lines is the number of lines.
	lines int
}

const (
	// timeFormat is the CRI's, with a fixed width.
	timeFormat = "2006-01-02T15:04:05.000000000Z07:00"
	// longestLine is the length in bytes at which a line is split.
	longestLine = 16 << 10
	// firstLines and lastLines are the numbers of lines in the message of a failed container,
	// lastBytes the maximum size of the last lines.
	firstLines, lastLines, lastBytes = 2, 10, 2 << 10
)

func openLog(path string, clk clock.PassiveClock) (*logFile, error) {
	l := &logFile{path: path, clock: clk}
	return l, l.reopen()
}

// reopen opens a new file of the same name after the kubelet has moved the old one.
func (l *logFile) reopen() error {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if err := os.MkdirAll(filepath.Dir(l.path), 0o750); err != nil {
		return fmt.Errorf("making the folder of the log: %w", err)
	}
	file, err := os.OpenFile(l.path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o640)
	if err != nil {
		return fmt.Errorf("opening the log: %w", err)
	}
	if l.file != nil {
		_ = l.file.Close()
	}
	l.file = file
	return nil
}

func (l *logFile) close() {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if l.file != nil {
		_ = l.file.Close()
		l.file = nil
	}
}

// line writes a line, or a part of a line.
func (l *logFile) line(stream string, partial bool, text []byte) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if l.lines++; l.lines <= firstLines {
		l.first = append(l.first, bytes.Clone(text[:min(len(text), lastBytes/4)]))
	}
	if len(l.last) == lastLines {
		l.last = l.last[1:]
	}
	l.last = append(l.last, bytes.Clone(text[:min(len(text), lastBytes)]))
	if l.file == nil {
		return
	}
	tag := "F"
	if partial {
		tag = "P"
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s %s %s ", l.clock.Now().UTC().Format(timeFormat), stream, tag)
	b.Write(text)
	b.WriteByte('\n')
	_, l.failed = l.file.Write(b.Bytes())
}

// told returns the first and last lines of output, and the write error, if any.
func (l *logFile) told() string {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	text := bytes.Join(l.last, []byte("\n"))
	cut := l.lines > lastLines
	if len(text) > lastBytes {
		cut, text = true, text[len(text)-lastBytes:]
		if i := bytes.IndexByte(text, '\n'); i >= 0 {
			text = text[i+1:] // drop a partial line
		}
	}
	if cut {
		begin := append(bytes.Join(l.first, []byte("\n")), []byte("\n…\n")...)
		text = append(begin, text...)
	}
	if l.failed != nil {
		text = append(text, []byte(fmt.Sprintf("\n(its log cannot be written: %s)", l.failed))...)
	}
	return string(bytes.ToValidUTF8(text, []byte("?")))
}

// stream is standard output or standard error of a container. Attached clients get it, too.
type stream struct {
	name string
	log  *logFile

	mutex    sync.Mutex
	rest     []byte
	watchers map[io.Writer]bool
}

// Write logs the data. It never fails: a log error must not stop a container.
func (s *stream) Write(data []byte) (int, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for w := range s.watchers {
		if _, err := w.Write(data); err != nil {
			delete(s.watchers, w)
		}
	}
	s.rest = append(s.rest, data...)
	for {
		i := bytes.IndexByte(s.rest, '\n')
		switch {
		case i >= 0 && i <= longestLine:
			s.log.line(s.name, false, s.rest[:i])
			s.rest = s.rest[i+1:]
		case len(s.rest) > longestLine:
			s.log.line(s.name, true, s.rest[:longestLine])
			s.rest = s.rest[longestLine:]
		default:
			s.rest = bytes.Clone(s.rest) // frees the memory of the written lines
			return len(data), nil
		}
	}
}

// end writes an unfinished last line.
func (s *stream) end() {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if len(s.rest) > 0 {
		s.log.line(s.name, false, s.rest)
		s.rest = nil
	}
}

// watch copies further output to a writer until stop is called.
func (s *stream) watch(w io.Writer) (stop func()) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.watchers == nil {
		s.watchers = map[io.Writer]bool{}
	}
	s.watchers[w] = true
	return func() {
		s.mutex.Lock()
		defer s.mutex.Unlock()
		delete(s.watchers, w)
	}
}
