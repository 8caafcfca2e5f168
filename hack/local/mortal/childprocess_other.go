//go:build !linux

package mortal

import "os/exec"

// setParentDeathSignal does nothing on this system.
func setParentDeathSignal(*exec.Cmd) {}
