// SPDX-License-Identifier: Apache-2.0

package box

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"syscall"
)

// Bind mounts a file or folder of the machine in the box, with all mounts below it.
type Bind struct {
	// Source must exist. A symbolic link is followed.
	Source string
	// Target is the path in the box. Missing folders are created; inside another bind they are
	// created in its source, unless that is read-only.
	Target string
	// ReadOnly applies to all mounts below Source, too.
	ReadOnly bool
}

// Rlimit is a limit of the processes in the box, as in setrlimit(2).
type Rlimit struct {
	Resource   int
	Soft, Hard uint64
}

// Spec describes a box and its command.
type Spec struct {
	// Root is an empty folder. The root of the box is mounted on it only in the namespace of the
	// box; on the machine it stays empty.
	Root string
	// Binds and Tmpfs are mounted in order of depth, not of declaration, above /proc and /dev.
	Binds []Bind
	// Tmpfs are folders in the box, usually /tmp: empty at first, writable for all, deleted with
	// the box.
	Tmpfs []string
	// ReadOnlyRoot makes everything read-only except Binds, Tmpfs and /dev.
	ReadOnlyRoot bool

	// Args is the command. Args[0] without a slash is looked up in the PATH of Env, inside the box.
	Args []string
	// Env is the whole environment.
	Env []string
	// Dir is the working directory, which is created if missing; empty means "/".
	Dir string
	// Init runs the command under a small process 1 that forwards signals and collects orphans.
	// Without it the command is process 1. With it, the Exit of a command that a signal ended has
	// only a Code.
	Init bool

	// Hostname is the host name, if not empty.
	Hostname string
	// NetNS is the path of the network namespace; empty means the caller's.
	NetNS string
	// Capabilities remain in the box, with or without "CAP_"; "ALL" means all. The box cannot have
	// capabilities that the caller lacks.
	Capabilities []string
	// Rlimits replace inherited limits.
	Rlimits []Rlimit

	// Stdin, Stdout and Stderr: nil is /dev/null. The process gets an *os.File itself. Output is
	// copied to any other Writer; a write error loses the output and does not affect the process.
	Stdin          io.Reader `json:"-"`
	Stdout, Stderr io.Writer `json:"-"`
}

// Command is another command for an existing box. It has the capabilities and limits of the box.
type Command struct {
	Args []string
	// Env is the whole environment; nil means the box's.
	Env []string
	// Dir is the working directory, which must exist; empty means the box's.
	Dir string
	// Terminal makes Stdin, a terminal, the controlling terminal of the command.
	Terminal bool
	// Stdin, Stdout and Stderr are those of Spec.
	Stdin          io.Reader
	Stdout, Stderr io.Writer
}

// Exit is the result of a process.
type Exit struct {
	// Code is the exit code, or 128 + Signal, as container runtimes report it.
	Code int
	// Signal ended the process; it is 0 if it exited.
	Signal syscall.Signal
}

// ErrEnded is the error of operations that need a running box.
var ErrEnded = errors.New("the box has ended")

func (s Spec) check() error {
	if len(s.Args) == 0 || s.Args[0] == "" {
		return errors.New("no command given")
	}
	if !filepath.IsAbs(s.Root) {
		return fmt.Errorf("root %q is not an absolute path", s.Root)
	}
	if s.Dir != "" && !filepath.IsAbs(s.Dir) {
		return fmt.Errorf("working directory %q is not an absolute path", s.Dir)
	}
	if s.NetNS != "" && !filepath.IsAbs(s.NetNS) {
		return fmt.Errorf("network namespace %q is not an absolute path", s.NetNS)
	}
	for _, bind := range s.Binds {
		if !filepath.IsAbs(bind.Source) || !filepath.IsAbs(bind.Target) || filepath.Clean(bind.Target) == "/" {
			return fmt.Errorf("%s: needs absolute paths, and a target below /", bind)
		}
	}
	for _, folder := range s.Tmpfs {
		if !filepath.IsAbs(folder) || filepath.Clean(folder) == "/" {
			return fmt.Errorf("tmpfs on %q: needs an absolute path below /", folder)
		}
	}
	_, err := parseCapabilities(s.Capabilities)
	return err
}

// String names the bind in errors.
func (b Bind) String() string { return fmt.Sprintf("bind of %q on %q", b.Source, b.Target) }
