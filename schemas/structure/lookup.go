// SPDX-License-Identifier: Apache-2.0

package structure

import "github.com/pergola-dev/pergola/schemas/fieldpath"

// Lookup returns the node at a path, or nil if the schema has none.
func (n *Node) Lookup(path fieldpath.Path) *Node {
	for _, step := range path {
		if n == nil {
			return nil
		}
		if _, isIndex := step.(int); isIndex && n.Items != nil {
			n = n.Items
			continue
		}
		name := fieldpath.StepName(step)
		if child, ok := n.Properties[name]; ok {
			n = child
		} else {
			n = n.Additional
		}
	}
	return n
}

// FieldNode returns the node at a path of names without indices, in which a list stands for its
// items. It returns nil if the schema has none.
func (n *Node) FieldNode(path fieldpath.Path) *Node {
	for _, step := range path {
		n = n.InnermostItems()
		if _, isIndex := step.(int); isIndex {
			continue
		}
		name := fieldpath.StepName(step)
		if child, ok := n.Properties[name]; ok {
			n = child
		} else {
			n = n.Additional
		}
		if n == nil {
			return nil
		}
	}
	return n
}

// InnermostItems returns the node of the innermost list items; n if it is not a list.
func (n *Node) InnermostItems() *Node {
	for n.Items != nil {
		n = n.Items
	}
	return n
}

// CanonicalPath converts names to fields, keys and indices according to the schema.
func (n *Node) CanonicalPath(names []string) fieldpath.Path {
	var path fieldpath.Path
	for _, name := range names {
		switch {
		case n != nil && n.Items != nil:
			index, ok := parseIndex(name)
			if !ok {
				return append(path, name)
			}
			path, n = append(path, index), n.Items
		case n != nil && n.Properties[name] == nil && n.Additional != nil:
			path, n = append(path, fieldpath.Key(name)), n.Additional
		default:
			path = append(path, name)
			if n != nil {
				n = n.Properties[name]
			}
		}
	}
	return path
}

func parseIndex(text string) (int, bool) {
	index := 0
	for _, c := range text {
		if c < '0' || c > '9' {
			return 0, false
		}
		index = index*10 + int(c-'0')
	}
	return index, text != ""
}
