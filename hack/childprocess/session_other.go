// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package childprocess

import "os/exec"

func setNewSession(*exec.Cmd) {}
