//go:build unix

package mortal

import (
	"os/exec"
	"syscall"
)

// apart starts the command in its own session: signals to the process group of the test, such as
// Ctrl-C, do not reach it.
func apart(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }
