package main

import (
	"os"
	"runtime/debug"
)

// thrifty makes the garbage of a process that runs for long at most half of what it holds, instead
// of as much: it works little, and holds the objects of a cluster. GOGC in the environment is
// obeyed instead.
func thrifty() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(50)
	}
}

// enough is when a command that ends soon begins to collect garbage as usual.
const enough = 1 << 30

// hasty lets a command that ends soon leave its garbage: evaluating CUE makes much of it, and
// collecting that takes a fifth of the time. Above a gigabyte it is collected nevertheless. GOGC in
// the environment is obeyed instead.
func hasty() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(800)
		debug.SetMemoryLimit(enough)
	}
}

// sparing lets a command that runs beside others on a machine of operations collect its garbage
// early, which takes half as much time again.
func sparing() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(35)
	}
}
