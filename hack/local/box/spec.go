package box

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"syscall"
)

// Bind shows a file or folder of the machine in the box, with all that is mounted below it.
type Bind struct {
	// Source must exist. A symbolic link is followed.
	Source string
	// Target is where it is in the box. What is missing of the path is made; inside of another bind
	// it is made in the folder that is bound there, if that is not read-only.
	Target string
	// ReadOnly counts for all mounts below Source, too.
	ReadOnly bool
}

// Rlimit is a limit of the processes in the box, as setrlimit(2) has it.
type Rlimit struct {
	Resource   int
	Soft, Hard uint64
}

// Spec says what is in a box and what runs in it.
type Spec struct {
	// Root is an empty folder on which the root of the box is mounted, in the namespace of the box
	// only: on the machine it stays empty.
	Root string
	// Binds and Tmpfs are mounted in order of depth, not of declaration, above /proc and /dev.
	Binds []Bind
	// Tmpfs are folders in the box that are empty at first, writable for all, and gone with the
	// box: /tmp, usually.
	Tmpfs []string
	// ReadOnlyRoot makes everything read-only that is not mounted by Binds, Tmpfs or as /dev.
	ReadOnlyRoot bool

	// Args is the command. Args[0] without a slash is looked up in the PATH of Env, inside of the
	// box.
	Args []string
	// Env is the whole environment.
	Env []string
	// Dir is the working directory, made if it is missing; "/" if empty.
	Dir string
	// Init runs the command under a small process 1 that passes signals on and collects orphans.
	// Without it the command is process 1 itself. A command that a signal ends is then an Exit with
	// Code only.
	Init bool

	// Hostname, if not empty.
	Hostname string
	// NetNS is the path of the network namespace; empty for that of the caller.
	NetNS string
	// Capabilities are those that are kept, with or without "CAP_"; "ALL" keeps all. What the
	// caller itself does not have is not had in the box either.
	Capabilities []string
	// Rlimits replace inherited ones.
	Rlimits []Rlimit

	// Stdin, Stdout and Stderr: nil is /dev/null. An *os.File is handed to the process itself. To
	// another Writer is copied; an error of it loses what was to be written and does not disturb
	// the process.
	Stdin          io.Reader `json:"-"`
	Stdout, Stderr io.Writer `json:"-"`
}

// Command is another command for a box that is there. It keeps the capabilities and limits of the
// box.
type Command struct {
	Args []string
	// Env is the whole environment; nil for that of the box.
	Env []string
	// Dir is the working directory, which must exist; empty for that of the box.
	Dir string
	// Terminal makes Stdin, a terminal, the controlling one of the command.
	Terminal bool
	// Stdin, Stdout and Stderr as in Spec.
	Stdin          io.Reader
	Stdout, Stderr io.Writer
}

// Exit is how a process ended.
type Exit struct {
	// Code is the exit code, or 128 + Signal, as container runtimes report it.
	Code int
	// Signal ended the process; 0 if it exited.
	Signal syscall.Signal
}

// ErrEnded is in the error of what needs a running box.
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
