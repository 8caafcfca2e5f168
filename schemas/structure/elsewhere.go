package structure

import "github.com/pergola-dev/pergola/schemas/fieldpath"

// mostBelow is how many steps a field that was put into the wrong place may be away.
const mostBelow = 3

// elsewhere gives the place to which a field belongs that does not exist where it is written: below
// the field that it is in, or else below one around that. It gives nil if there is no such place,
// or more than one that is as near.
func (n *Node) elsewhere(path fieldpath.Path) fieldpath.Path {
	name := fieldpath.Name(path[len(path)-1])
	for around := len(path) - 1; around >= 0; around-- {
		if node := n.Lookup(path[:around]); node != nil {
			if found := node.below(name); len(found) == 1 {
				return path[:around].Append(found[0]...)
			} else if len(found) > 1 {
				return nil
			}
		}
	}
	return nil
}

// below gives the paths of the nearest fields of a name, without those in lists and maps.
func (n *Node) below(name string) []fieldpath.Path {
	type at struct {
		path fieldpath.Path
		node *Node
	}
	level := []at{{nil, n}}
	for range mostBelow {
		var found []fieldpath.Path
		var next []at
		for _, a := range level {
			for _, field := range a.node.Names() {
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
