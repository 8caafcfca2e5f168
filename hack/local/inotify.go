package main

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
)

const (
	// inotifyInstances is where Linux has how many of them a user may have. An API server takes
	// seven, and each program that reads its certificates again one or more: the kernel's 128 are
	// enough for one landscape whose control planes run for real, not for two.
	inotifyInstances = "/proc/sys/fs/inotify/max_user_instances"
	// wantedInstances are enough for some.
	wantedInstances = 1024
)

// makeRoom raises the number of inotify instances where it may, and says how it is done where it
// may not. Pods fail with "too many open files" without.
func makeRoom(file string, out io.Writer) {
	text, err := os.ReadFile(file)
	if err != nil {
		return // another system
	}
	have, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || have >= wantedInstances {
		return
	}
	if os.WriteFile(file, []byte(strconv.Itoa(wantedInstances)), 0o644) == nil { //nolint:gosec // a setting of the kernel has its mode
		fmt.Fprintf(out, "raised fs.inotify.max_user_instances from %d to %d, until the machine restarts: each API server takes seven\n", have, wantedInstances)
		return
	}
	fmt.Fprintf(out, "fs.inotify.max_user_instances is %d: enough for the pods of one landscape; for more: sudo sysctl fs.inotify.max_user_instances=%d\n", have, wantedInstances)
}
