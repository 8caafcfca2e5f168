// SPDX-License-Identifier: Apache-2.0

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
	// writeError is the error of the last write, for example of a full disk. That output is lost,
	// and the container continues.
	writeError error
	// headLines and last are the first and last lines of output, for a failed container's message.
	// Some programs print the error first and then their usage.
	headLines, tailLines [][]byte
	// lineCount is the number of lines.
	lineCount int
}

const (
	// timeFormat is the CRI's, with a fixed width.
	timeFormat = "2006-01-02T15:04:05.000000000Z07:00"
	// maxLineLength is the length in bytes at which a line is split.
	maxLineLength = 16 << 10
	// firstLines and lastLines are the numbers of lines in the message of a failed container;
	// lastBytes is the maximum size of the last lines.
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
		return fmt.Errorf("creating the folder of the log: %w", err)
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

// writeLine writes a line, or a part of a line.
func (l *logFile) writeLine(stream string, partial bool, text []byte) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if l.lineCount++; l.lineCount <= firstLines {
		l.headLines = append(l.headLines, bytes.Clone(text[:min(len(text), lastBytes/4)]))
	}
	if len(l.tailLines) == lastLines {
		l.tailLines = l.tailLines[1:]
	}
	l.tailLines = append(l.tailLines, bytes.Clone(text[:min(len(text), lastBytes)]))
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
	_, l.writeError = l.file.Write(b.Bytes())
}

// failureMessage returns the first and last lines of output, and the write error, if any.
func (l *logFile) failureMessage() string {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	text := bytes.Join(l.tailLines, []byte("\n"))
	cut := l.lineCount > lastLines
	if len(text) > lastBytes {
		cut, text = true, text[len(text)-lastBytes:]
		if i := bytes.IndexByte(text, '\n'); i >= 0 {
			text = text[i+1:] // drop a partial line
		}
	}
	if cut {
		begin := append(bytes.Join(l.headLines, []byte("\n")), []byte("\n…\n")...)
		text = append(begin, text...)
	}
	if l.writeError != nil {
		text = append(text, []byte(fmt.Sprintf("\n(its log cannot be written: %s)", l.writeError))...)
	}
	return string(bytes.ToValidUTF8(text, []byte("?")))
}

// stream is standard output or standard error of a container. Attached clients get it, too.
type stream struct {
	name string
	log  *logFile

	mutex       sync.Mutex
	partialLine []byte
	watchers    map[io.Writer]bool
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
	s.partialLine = append(s.partialLine, data...)
	for {
		i := bytes.IndexByte(s.partialLine, '\n')
		switch {
		case i >= 0 && i <= maxLineLength:
			s.log.writeLine(s.name, false, s.partialLine[:i])
			s.partialLine = s.partialLine[i+1:]
		case len(s.partialLine) > maxLineLength:
			s.log.writeLine(s.name, true, s.partialLine[:maxLineLength])
			s.partialLine = s.partialLine[maxLineLength:]
		default:
			s.partialLine = bytes.Clone(s.partialLine) // frees the memory of the written lines
			return len(data), nil
		}
	}
}

// flush writes an unfinished last line.
func (s *stream) flush() {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if len(s.partialLine) > 0 {
		s.log.writeLine(s.name, false, s.partialLine)
		s.partialLine = nil
	}
}

// addWatcher copies further output to a writer until stop is called.
func (s *stream) addWatcher(w io.Writer) (stop func()) {
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
