// SPDX-License-Identifier: Apache-2.0

//go:build unix

package childprocess

import (
	"os/exec"
	"syscall"
)

// setNewSession starts the command in its own session: signals to the process group of the test,
// such as Ctrl-C, do not reach it.
func setNewSession(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }
