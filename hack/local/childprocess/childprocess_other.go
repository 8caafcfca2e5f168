// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package childprocess

import "os/exec"

// setParentDeathSignal does nothing on this system.
func setParentDeathSignal(*exec.Cmd) {}
