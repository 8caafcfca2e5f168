// SPDX-License-Identifier: Apache-2.0

package printable

import "fmt"

// Plural returns the first word for 1, and the second for any other number.
func Plural(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// WithCount returns a number with its word, plus an s for any number but 1: 1 object, 2 objects.
func WithCount(n int, one string) string { return fmt.Sprintf("%d %s", n, Plural(n, one, one+"s")) }
