// Package panics takes a panic to somebody who can tell it: out of the goroutine it happened in,
// where it would end the process with everything else that goes on in it, to the one that waits, or
// into an error. Detached and SideBySide run work in goroutines so.
package panics
