// SPDX-License-Identifier: Apache-2.0

package evaluation

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"
)

// isolateProcess moves a worker into its own process group, which the terminal does not signal, and
// ends it with its parent. If isolated, it gets its own network without any interface.
func isolateProcess(cmd *exec.Cmd, isolated bool) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if !isolated {
		return
	}
	// Without root, a network namespace needs a user namespace.
	cmd.SysProcAttr.Cloneflags = syscall.CLONE_NEWUSER | syscall.CLONE_NEWNET
	cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getuid(), HostID: os.Getuid(), Size: 1}}
	cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getgid(), HostID: os.Getgid(), Size: 1}}
}

// limitProcess limits the memory of this process, slightly above the worker's own limit. It
// disables core dumps, which would contain Secrets.
func limitProcess(limits Limits) error {
	memory := uint64(limits.Memory) + 256<<20
	for _, limit := range []struct {
		what     string
		resource int
		value    uint64
	}{{"RLIMIT_DATA", syscall.RLIMIT_DATA, memory}, {"RLIMIT_CORE", syscall.RLIMIT_CORE, 0}} {
		var now syscall.Rlimit
		if err := syscall.Getrlimit(limit.resource, &now); err != nil {
			return fmt.Errorf("%s: %w", limit.what, err)
		}
		value := min(limit.value, now.Max)
		if err := syscall.Setrlimit(limit.resource, &syscall.Rlimit{Cur: value, Max: value}); err != nil {
			return fmt.Errorf("%s: %w", limit.what, err)
		}
	}
	// The Go runtime ignores this signal by default.
	over := make(chan os.Signal, 1)
	signal.Notify(over, syscall.SIGXCPU)
	go func() {
		<-over
		os.Exit(1)
	}()
	return nil
}

// raiseTimeLimit raises the processor time limit of this process by more. The process then ends
// even if its parent was stopped.
func raiseTimeLimit(more time.Duration) error {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return err
	}
	used := time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
	var now syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_CPU, &now); err != nil {
		return err
	}
	now.Cur = min(uint64((used+more)/time.Second)+1, now.Max)
	return syscall.Setrlimit(syscall.RLIMIT_CPU, &now)
}
