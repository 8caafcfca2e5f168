// SPDX-License-Identifier: Apache-2.0

package process

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
)

var errNoProcess = errors.New("no such process")

// bootID changes with every boot, so start times of different boots never match.
var bootID = sync.OnceValue(func() string {
	data, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "unknown-boot"
	}
	return strings.TrimSpace(string(data))
})

// identify returns a string that is unique among all processes of this machine: the boot and the
// clock tick of the start. A dying process still holds its ports and files: its first thread is
// dead, but others are not.
func identify(pid int) (born string, dying bool, err error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "", false, errNoProcess
	}
	// The second field is the name in parentheses, which may contain blanks and parentheses.
	_, rest, found := strings.Cut(string(data[max(0, strings.LastIndexByte(string(data), ')')):]), ") ")
	fields := strings.Fields(rest)
	const state, threads, startTime = 0, 17, 19
	if !found || len(fields) <= startTime {
		return "", false, fmt.Errorf("reading /proc/%d/stat: unexpected format", pid)
	}
	dead := fields[state] == "Z" || fields[state] == "X"
	if dead && (fields[threads] == "0" || fields[threads] == "1") {
		return "", false, errNoProcess
	}
	return bootID() + "/" + fields[startTime], dead, nil
}

func isFromEarlierBoot(born string) bool {
	boot, _, found := strings.Cut(born, "/")
	return found && boot != bootID()
}
