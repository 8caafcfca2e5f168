// SPDX-License-Identifier: Apache-2.0

package childprocess

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
)

func setParentDeathSignal(cmd *exec.Cmd) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
}

// TieToParent ends this process with the thread that started it, also after an exec. parent is the
// process ID of the starter: Tie fails if the starter has already ended.
func TieToParent(parent int) error {
	if _, _, errno := syscall.RawSyscall(syscall.SYS_PRCTL, syscall.PR_SET_PDEATHSIG, uintptr(syscall.SIGKILL), 0); errno != 0 {
		return fmt.Errorf("tying this process to its starter: %w", errno)
	}
	if os.Getppid() != parent {
		return fmt.Errorf("process %d, which started this one, has ended", parent)
	}
	return nil
}
