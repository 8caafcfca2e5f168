package structure

import "github.com/pergola-dev/pergola/schemas/fieldpath"

// Lookup follows a path from the root and gives the node there, nil where the schema says nothing.
func (n *Node) Lookup(path fieldpath.Path) *Node {
	for _, step := range path {
		if n == nil {
			return nil
		}
		if _, isIndex := step.(int); isIndex && n.Items != nil {
			n = n.Items
			continue
		}
		name := fieldpath.Name(step)
		if child, ok := n.Properties[name]; ok {
			n = child
		} else {
			n = n.Additional
		}
	}
	return n
}

// Field follows the names of fields from the root, without indices: what a list holds is what the
// list is. It gives nil where the schema says nothing.
func (n *Node) Field(path fieldpath.Path) *Node {
	for _, step := range path {
		n = n.Held()
		if _, isIndex := step.(int); isIndex {
			continue
		}
		name := fieldpath.Name(step)
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

// Held is the schema of the items of a list, at any depth; of anything else its own.
func (n *Node) Held() *Node {
	for n.Items != nil {
		n = n.Items
	}
	return n
}

// Canonical rewrites the steps of a path as fields, keys and indices, as the schema has them.
func (n *Node) Canonical(names []string) fieldpath.Path {
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
