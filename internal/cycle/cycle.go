// SPDX-License-Identifier: Apache-2.0

// Package cycle finds steps that wait for each other. It checks flows of the catalogue before
// anything is applied, and graphs before they run.
package cycle

// FindCycle returns the ids of one circle, each needing the next, with the first repeated at the
// end. It returns nil if there is none. It searches in the order of ids and needs.
func FindCycle(ids []string, needs func(id string) []string) []string {
	const visiting, done = 1, 2
	mark := map[string]int{}
	var stack []string
	var visit func(id string) []string
	visit = func(id string) []string {
		mark[id] = visiting
		stack = append(stack, id)
		for _, need := range needs(id) {
			switch mark[need] {
			case visiting:
				for i, s := range stack {
					if s == need {
						return append(append([]string{}, stack[i:]...), need)
					}
				}
			case 0:
				if path := visit(need); path != nil {
					return path
				}
			}
		}
		stack = stack[:len(stack)-1]
		mark[id] = done
		return nil
	}
	for _, id := range ids {
		if mark[id] == 0 {
			if path := visit(id); path != nil {
				return path
			}
		}
	}
	return nil
}
