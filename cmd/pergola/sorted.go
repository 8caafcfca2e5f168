package main

import "sort"

// sorted returns the list in order.
func sorted(list []string) []string {
	sort.Strings(list)
	return list
}
