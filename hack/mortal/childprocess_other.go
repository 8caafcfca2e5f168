//go:build !linux

package mortal

import "os/exec"

// setParentDeathSignal does nothing: other systems have no equivalent.
func setParentDeathSignal(*exec.Cmd) {}
