// SPDX-License-Identifier: Apache-2.0

//go:build unix && !linux

package process

import (
	"errors"
	"fmt"
	"os/exec"
	"strings"
)

var errNoProcess = errors.New("no such process")

// identify returns the identity of a process without /proc: the second of its start, from ps.
func identify(pid int) (born string, dying bool, err error) {
	command := exec.Command("ps", "-o", "stat=,lstart=", "-p", fmt.Sprint(pid))
	command.Env = []string{"LC_ALL=C", "TZ=UTC", "PATH=/bin:/usr/bin"}
	out, err := command.Output()
	fields := strings.Fields(string(out))
	if err != nil || len(fields) < 2 || strings.HasPrefix(fields[0], "Z") {
		return "", false, errNoProcess
	}
	return strings.Join(fields[1:], " "), false, nil
}

// isFromEarlierBoot is unknown on this system.
func isFromEarlierBoot(string) bool { return false }
