// SPDX-License-Identifier: Apache-2.0

// Package backoff computes the wait between retries. It has no clock and no state.
package backoff

import "time"

// Delay returns the wait after a number of consecutive failures (1 or more): first, doubled with
// each further failure, up to most.
func Delay(failures int, first, most time.Duration) time.Duration {
	wait := first
	for ; failures > 1 && wait <= most/2; failures-- {
		wait *= 2
	}
	if failures > 1 {
		return most
	}
	return min(wait, most)
}
