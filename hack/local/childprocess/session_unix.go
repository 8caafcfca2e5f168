// SPDX-License-Identifier: Apache-2.0

//go:build unix

package childprocess

import (
	"os/exec"
	"syscall"
)

// setNewSession starts the command in a new session: signals to the test's group, as by Ctrl-C,
// skip it.
func setNewSession(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }
