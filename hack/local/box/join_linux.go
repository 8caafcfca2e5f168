// SPDX-License-Identifier: Apache-2.0

package box

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// join forks a child into the box. The child executes this program again with these files and
// roleExec.
//
// Only a process with one thread can join a user namespace, and Go programs have several. So the
// child is forked directly and does nothing but system calls. It joins, and forks again, because
// only new processes get ids in a PID namespace. The grandchild is a child of this process. It
// joins the mounts itself, in joinMounts: the box does not have the libraries of this program.
func (p *Process) join(files []*os.File) (*os.Process, error) {
	self, err := os.Open("/proc/self/exe")
	if err != nil {
		return nil, fmt.Errorf("opening this program: %w", err)
	}
	defer self.Close()
	reportIn, reportOut, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("opening a pipe: %w", err)
	}
	defer reportIn.Close()
	f := &forker{namespaces: p.joinFlags()}
	var failed error
	ended := p.child.WithHandle(func(handle uintptr) {
		if failed = f.prepare(files, handle, self, reportOut); failed == nil {
			f.fork()
		}
	})
	f.release()
	_ = reportOut.Close()
	if ended != nil {
		return nil, ErrEnded
	}
	if failed != nil {
		return nil, failed
	}
	return f.collectResult(reportIn)
}

// joinMounts moves this thread, which is locked, and its command into the mount namespace of the
// box.
func joinMounts() error {
	// Threads share their root and working directory, which prevents joining.
	if err := unix.Unshare(unix.CLONE_FS); err != nil {
		return fmt.Errorf("joining its mounts: %w", err)
	}
	if err := unix.Setns(boxFile, unix.CLONE_NEWNS); err != nil {
		return fmt.Errorf("joining its mounts: %w", err)
	}
	return nil
}

// joinFlags are the flags of the box's namespaces to join, except the mount namespace.
func (p *Process) joinFlags() uintptr {
	flags := uintptr(unix.CLONE_NEWPID | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC)
	if p.hasUserNamespace {
		flags |= unix.CLONE_NEWUSER
	}
	if p.spec.NetNS != "" {
		flags |= unix.CLONE_NEWNET
	}
	return flags
}

// forker has the prepared arguments of the children, which cannot allocate.
type forker struct {
	namespaces   uintptr
	files        [boxFile + 1]uintptr
	self, report uintptr
	duplicates   []int
	empty        *byte
	args, env    []*byte
	message      [2]int32

	child int
	errno syscall.Errno
}

// The steps of the children, as they report them, followed by the error, or the process id after
// the fork.
const (
	stepFork = iota
	stepJoin
	stepFiles
	stepExecute
)

var stepNames = [...]string{"forking into its namespaces", "joining its namespaces", "passing files", "executing this program"}

// prepare takes the files for the program, the box last, and the files for the children. It
// duplicates all to numbers above the program's own, to prevent overwriting before use.
func (f *forker) prepare(files []*os.File, box uintptr, self, report *os.File) error {
	var err error
	if f.args, err = syscall.SlicePtrFromStrings([]string{childName, roleExec}); err != nil {
		return fmt.Errorf("passing arguments: %w", err)
	}
	if f.env, err = syscall.SlicePtrFromStrings(childEnv); err != nil {
		return fmt.Errorf("passing the environment: %w", err)
	}
	f.empty = new(byte)
	for i, file := range files {
		if f.files[i], err = f.duplicateFile(file.Fd()); err != nil {
			return err
		}
	}
	if f.files[boxFile], err = f.duplicateFile(box); err != nil {
		return err
	}
	if f.self, err = f.duplicateFile(self.Fd()); err != nil {
		return err
	}
	f.report, err = f.duplicateFile(report.Fd())
	return err
}

func (f *forker) duplicateFile(file uintptr) (uintptr, error) {
	lifted, err := unix.FcntlInt(file, unix.F_DUPFD_CLOEXEC, boxFile+1)
	if err != nil {
		return 0, fmt.Errorf("passing files: %w", err)
	}
	f.duplicates = append(f.duplicates, lifted)
	return uintptr(lifted), nil
}

func (f *forker) release() {
	for _, file := range f.duplicates {
		_ = unix.Close(file)
	}
}

// fork creates the children. It blocks signals meanwhile, because their handlers are Go code.
func (f *forker) fork() {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	syscall.ForkLock.Lock()
	defer syscall.ForkLock.Unlock()
	var all, before unix.Sigset_t
	for i := range all.Val {
		all.Val[i] = ^all.Val[i]
	}
	if err := unix.PthreadSigmask(unix.SIG_SETMASK, &all, &before); err != nil {
		errors.As(err, &f.errno)
		return
	}
	f.child, f.errno = f.rawFork()
	_ = unix.PthreadSigmask(unix.SIG_SETMASK, &before, nil)
}

// rawFork returns only in the parent. It must not allocate, grow the stack or take a lock: the
// children have no other thread of the Go runtime.
//
//go:norace
//go:nosplit
func (f *forker) rawFork() (int, syscall.Errno) {
	child, _, errno := syscall.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
	if errno != 0 || child != 0 {
		return int(child), errno
	}
	if _, _, errno = syscall.RawSyscall(unix.SYS_SETNS, f.files[boxFile], f.namespaces, 0); errno != 0 {
		f.writeReport(stepJoin, int32(errno))
		f.exitChild()
	}
	child, _, errno = syscall.RawSyscall6(unix.SYS_CLONE, uintptr(unix.CLONE_PARENT|unix.SIGCHLD), 0, 0, 0, 0, 0)
	if errno != 0 {
		f.writeReport(stepFork, -int32(errno))
		f.exitChild()
	}
	if child != 0 {
		f.writeReport(stepFork, int32(child))
		f.exitChild()
	}
	for i := uintptr(0); i <= boxFile; i++ {
		if _, _, errno = syscall.RawSyscall(unix.SYS_DUP3, f.files[i], i, 0); errno != 0 {
			f.writeReport(stepFiles, int32(errno))
			f.exitChild()
		}
	}
	_, _, errno = syscall.RawSyscall6(unix.SYS_EXECVEAT, f.self, uintptr(unsafe.Pointer(f.empty)),
		uintptr(unsafe.Pointer(&f.args[0])), uintptr(unsafe.Pointer(&f.env[0])), unix.AT_EMPTY_PATH, 0)
	f.writeReport(stepExecute, int32(errno))
	f.exitChild()
	return 0, 0
}

//go:norace
//go:nosplit
func (f *forker) writeReport(step, value int32) {
	f.message[0], f.message[1] = step, value
	_, _, _ = syscall.RawSyscall(unix.SYS_WRITE, f.report, uintptr(unsafe.Pointer(&f.message)), unsafe.Sizeof(f.message))
}

//go:norace
//go:nosplit
func (f *forker) exitChild() {
	for {
		_, _, _ = syscall.RawSyscall(unix.SYS_EXIT_GROUP, 1, 0, 0)
	}
}

// collectResult collects the first child and returns the second.
func (f *forker) collectResult(report io.Reader) (*os.Process, error) {
	if f.errno != 0 {
		return nil, fmt.Errorf("forking: %w", f.errno)
	}
	said, err := io.ReadAll(report)
	for {
		if _, interrupted := syscall.Wait4(f.child, nil, 0, nil); !errors.Is(interrupted, syscall.EINTR) {
			break
		}
	}
	if err != nil {
		return nil, fmt.Errorf("reading the report: %w", err)
	}
	var process *os.Process
	var failure error
	for ; len(said) >= 8; said = said[8:] {
		step, value := int32(binary.NativeEndian.Uint32(said)), int32(binary.NativeEndian.Uint32(said[4:]))
		if step == stepFork && value > 0 {
			if process, err = os.FindProcess(int(value)); err != nil {
				return nil, fmt.Errorf("finding process %d: %w", value, err)
			}
			continue
		}
		failure = fmt.Errorf("%s: %w", stepNames[step], syscall.Errno(max(value, -value)))
	}
	switch {
	case process == nil && failure == nil:
		return nil, errors.New("forking: the child ended without a report")
	case failure != nil && process != nil:
		_, _ = process.Wait()
	}
	return process, failure
}
