// SPDX-License-Identifier: Apache-2.0

package structure

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pergola-dev/pergola/schemas/fieldpath"
)

// DuplicateItems returns the repeated items of sets and of lists with keys. Check reports wrong
// types.
func (n *Node) DuplicateItems(value any) []Finding {
	c := &checker{}
	c.findDuplicates(nil, n, value)
	return c.findings
}

func (c *checker) findDuplicates(path fieldpath.Path, n *Node, value any) {
	switch value := value.(type) {
	case map[string]any:
		if len(n.Properties) == 0 && n.Additional == nil {
			return
		}
		for name, child := range value {
			if inner := n.Properties[name]; inner != nil {
				c.findDuplicates(append(path, name), inner, child)
			} else if n.Additional != nil {
				c.findDuplicates(append(path, fieldpath.Key(name)), n.Additional, child)
			}
		}
	case []any:
		var seen map[string]int
		for i, item := range value {
			if key, ok := n.itemKey(item); ok {
				if first, double := seen[key]; double {
					c.addDuplicate(path.Append(i), n, first)
				} else {
					if seen == nil {
						seen = make(map[string]int, len(value))
					}
					seen[key] = i
				}
			}
			if n.Items != nil {
				c.findDuplicates(append(path, i), n.Items, item)
			}
		}
	}
}

func (c *checker) addDuplicate(path fieldpath.Path, n *Node, first int) {
	list := path[:len(path)-1].String()
	if len(n.ListKeys) == 1 {
		path = append(path, n.ListKeys[0])
	}
	c.addFinding(slices.Clone(path), "Duplicate", "is already used by %s[%d]; it must be unique in the list", list, first)
}

// itemKey returns the key of an item, or false if items may be equal or a key is missing.
func (n *Node) itemKey(item any) (string, bool) {
	switch n.ListType {
	case "set":
		return fmt.Sprintf("%T %v", item, item), true
	case "map":
		object, ok := item.(map[string]any)
		if !ok {
			return "", false
		}
		var key strings.Builder
		for _, name := range n.ListKeys {
			value, found := object[name]
			if !found && n.Items != nil && n.Items.Properties[name] != nil {
				value = n.Items.Properties[name].Default
			}
			fmt.Fprintf(&key, "%T %v\n", value, value)
		}
		return key.String(), true
	}
	return "", false
}
