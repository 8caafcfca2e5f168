// SPDX-License-Identifier: Apache-2.0

// Package panics moves a panic out of the goroutine in which it would end the process: to the
// goroutine that waits, or into an error. Detached and RunParallel run such goroutines.
package panics
