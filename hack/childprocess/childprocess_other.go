// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package childprocess

import "os/exec"

// setParentDeathSignal does nothing: other systems have no equivalent.
func setParentDeathSignal(*exec.Cmd) {}
