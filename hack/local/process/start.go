// SPDX-License-Identifier: Apache-2.0

package process

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// Spec describes how to start a process.
type Spec struct {
	// Binary is the path of the executable.
	Binary string
	// Args are the arguments.
	Args []string
	// Env is the whole environment: nothing is inherited. A proxy variable, for instance, would
	// send the API server's webhook calls to the proxy.
	Env []string
	// Log is the file for standard output and standard error. The previous start's log is renamed
	// to the suffix ".1".
	Log string
	// IgnoreBinary omits the path of the executable from the digest, because "go run" changes it
	// every time.
	IgnoreBinary bool
	// Salt is added to the digest, for other inputs whose changes require a restart.
	Salt string
}

// Digest identifies the Spec.
func (s Spec) Digest() string {
	binary := s.Binary
	if s.IgnoreBinary {
		binary = ""
	}
	hash := sha256.New()
	fmt.Fprintf(hash, "%q %q %q %q", binary, s.Args, s.Env, s.Salt)
	return hex.EncodeToString(hash.Sum(nil)[:8])
}

// Start starts the process in a new session, so that it survives the caller and its terminal,
// without standard input, and records it at recordPath.
func Start(spec Spec, recordPath string) (*Record, error) {
	if err := os.MkdirAll(filepath.Dir(spec.Log), 0o700); err != nil {
		return nil, fmt.Errorf("creating log folder: %w", err)
	}
	if err := os.Rename(spec.Log, spec.Log+".1"); err != nil && !os.IsNotExist(err) {
		return nil, fmt.Errorf("keeping previous log: %w", err)
	}
	log, err := os.OpenFile(spec.Log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening log: %w", err)
	}
	defer log.Close()

	command := exec.Command(spec.Binary, spec.Args...)
	command.Env = append([]string{}, spec.Env...) // nil would inherit all
	command.Dir = filepath.Dir(spec.Log)
	command.Stdout, command.Stderr = log, log
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := command.Start(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", spec.Binary, err)
	}
	record := &Record{PID: command.Process.Pid, Digest: spec.Digest(), Command: spec.Binary}
	// A process that died at once has no identity; then the record correctly names a dead process.
	record.StartID, _, _ = identify(record.PID)
	// Collect the process if it ends before this one; later init does.
	go func() { _ = command.Wait() }()
	if err := record.write(recordPath); err != nil {
		_ = command.Process.Kill()
		return nil, err
	}
	return record, nil
}

// ReadTail returns the last lines of a log, or nothing if the log does not exist.
func ReadTail(log string, lines int) []string {
	file, err := os.Open(log)
	if err != nil {
		return nil
	}
	defer file.Close()
	const enough = 16 << 10
	size, err := file.Seek(0, 2)
	if err != nil {
		return nil
	}
	start := max(0, size-enough)
	buffer := make([]byte, size-start)
	n, _ := file.ReadAt(buffer, start)
	text := strings.TrimRight(string(buffer[:n]), "\n")
	if text == "" {
		return nil
	}
	all := strings.Split(text, "\n")
	if start > 0 && len(all) > 1 {
		all = all[1:] // drop the partial first line
	}
	return all[max(0, len(all)-lines):]
}
