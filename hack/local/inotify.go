// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
)

const (
	// inotifyInstances holds the limit of inotify instances per user. An API server takes seven, a
	// program that reloads its certificates at least one.
	// The kernel's 128 are enough for one landscape with real control planes, not for two.
	inotifyInstances = "/proc/sys/fs/inotify/max_user_instances"
	// wantedInotifyInstances are enough for several landscapes.
	wantedInotifyInstances = 1024
)

// raiseInotifyLimit raises the number of inotify instances, or prints how to raise it if it lacks
// permission. Without it pods fail with "too many open files".
func raiseInotifyLimit(file string, out io.Writer) {
	text, err := os.ReadFile(file)
	if err != nil {
		return // not Linux
	}
	have, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || have >= wantedInotifyInstances {
		return
	}
	if os.WriteFile(file, []byte(strconv.Itoa(wantedInotifyInstances)), 0o644) == nil { //nolint:gosec // a setting of the kernel has its mode
		fmt.Fprintf(out, "raised fs.inotify.max_user_instances from %d to %d, until the machine restarts: each API server takes seven\n", have, wantedInotifyInstances)
		return
	}
	fmt.Fprintf(out, "fs.inotify.max_user_instances is %d: enough for the pods of one landscape; for more: sudo sysctl fs.inotify.max_user_instances=%d\n", have, wantedInotifyInstances)
}
