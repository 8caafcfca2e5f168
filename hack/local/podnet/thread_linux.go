// SPDX-License-Identifier: Apache-2.0

package podnet

import (
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// RunInside calls a function in the network namespace at a path (NetNS of a Pod). Its sockets stay
// there; its goroutines do not run there.
func RunInside(netns string, call func() error) error {
	return runOnNewThread(func() error {
		file, err := os.Open(netns)
		if err != nil {
			return fmt.Errorf("opening network namespace: %w", err)
		}
		defer file.Close()
		if err := unix.Setns(int(file.Fd()), unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("joining network namespace %s: %w", netns, err)
		}
		return call()
	})
}

// runOnNewThread calls a function on a thread that no other code has used or will use.
func runOnNewThread(call func() error) error {
	result := make(chan error, 1)
	go func() {
		// The goroutine ends without unlocking, which ends its thread.
		runtime.LockOSThread()
		if unix.Gettid() == unix.Getpid() {
			// The first thread never ends and represents the process (/proc/PID/ns,
			// /proc/self/net). While it is busy here, the next goroutine gets another thread.
			result <- runOnNewThread(call)
			runtime.UnlockOSThread()
			return
		}
		result <- call()
	}()
	return <-result
}
