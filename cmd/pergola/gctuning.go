// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"runtime/debug"
)

// tuneGCForRole limits the garbage of a long-running process to half of its live heap: it works
// little and caches a cluster's objects. GOGC in the environment takes precedence.
func tuneGCForRole() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(50)
	}
}

// commandMemoryLimit is the heap in bytes from which a short-lived command collects garbage as
// usual.
const commandMemoryLimit = 1 << 30

// tuneGCForCommand lets a short-lived command leave its garbage: evaluating CUE makes much of it,
// and collecting it takes a fifth of the time. Above a gigabyte it is collected nevertheless. GOGC
// in the environment takes precedence.
func tuneGCForCommand() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(800)
		debug.SetMemoryLimit(commandMemoryLimit)
	}
}

// tuneGCForSharedHost collects garbage early, for a command that shares an operations machine. It
// takes half as much time again.
func tuneGCForSharedHost() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(35)
	}
}
