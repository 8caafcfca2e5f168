// Package backoff says how long whoever failed waits before the next try. It has no clock and
// remembers nothing.
package backoff

import "time"

// After is the time to wait after a number of failures in a row, 1 or more: first, doubled with
// each further failure, up to most.
func After(failures int, first, most time.Duration) time.Duration {
	wait := first
	for ; failures > 1 && wait <= most/2; failures-- {
		wait *= 2
	}
	if failures > 1 {
		return most
	}
	return min(wait, most)
}
