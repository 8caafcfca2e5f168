// SPDX-License-Identifier: Apache-2.0

package main

import "sort"

// sortStrings returns the list in order.
func sortStrings(list []string) []string {
	sort.Strings(list)
	return list
}
