// SPDX-License-Identifier: Apache-2.0

package structure

import "github.com/pergola-dev/pergola/schemas/fieldpath"

// maxSearchDepth is the maximum depth of the search for a misplaced field.
const maxSearchDepth = 3

// findMisplaced returns the right path of a misplaced field: below its parent, or else below an
// ancestor. It returns nil if there is no path or several equally near ones.
func (n *Node) findMisplaced(path fieldpath.Path) fieldpath.Path {
	name := fieldpath.StepName(path[len(path)-1])
	for around := len(path) - 1; around >= 0; around-- {
		if node := n.Lookup(path[:around]); node != nil {
			if found := node.nearestFields(name); len(found) == 1 {
				return path[:around].Append(found[0]...)
			} else if len(found) > 1 {
				return nil
			}
		}
	}
	return nil
}

// nearestFields returns the paths of the nearest fields with a name, except in lists and maps.
func (n *Node) nearestFields(name string) []fieldpath.Path {
	type at struct {
		path fieldpath.Path
		node *Node
	}
	level := []at{{nil, n}}
	for range maxSearchDepth {
		var found []fieldpath.Path
		var next []at
		for _, a := range level {
			for _, field := range a.node.FieldNames() {
				path := a.path.Append(field)
				if field == name {
					found = append(found, path)
				}
				next = append(next, at{path, a.node.Properties[field]})
			}
		}
		if len(found) > 0 {
			return found
		}
		level = next
	}
	return nil
}
