//go:build !unix

package childprocess

import "os/exec"

func setNewSession(*exec.Cmd) {}
