//go:build unix

package mortal

import (
	"os/exec"
	"syscall"
)

// apart is in a session of its own: what is sent to the group of the test, as by Ctrl-C, is not for
// it.
func apart(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }
