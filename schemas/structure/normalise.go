// SPDX-License-Identifier: Apache-2.0

package structure

import (
	"math"

	"github.com/pergola-dev/pergola/schemas/fieldpath"
)

// Normalise returns a copy as the API server would store it: without null fields, and with integers
// for whole numbers such as 1.0. It also returns the paths of the removed fields.
func (k *Kind) Normalise(object map[string]any) (map[string]any, []fieldpath.Path) {
	n := &normaliser{}
	clean, _ := n.normaliseValue(nil, k.Root, object).(map[string]any)
	return clean, n.removedPaths
}

type normaliser struct{ removedPaths []fieldpath.Path }

func (r *normaliser) normaliseValue(path fieldpath.Path, n *Node, value any) any {
	switch v := value.(type) {
	case map[string]any:
		return r.normaliseObject(path, n, v)
	case []any:
		var items *Node
		if n != nil {
			items = n.Items
		}
		list := make([]any, len(v))
		for i := range v {
			list[i] = r.normaliseValue(path.Append(i), items, v[i])
		}
		return list
	case float64:
		whole := n != nil && (n.Type == "integer" || n.IntOrString) && v == math.Trunc(v) && math.Abs(v) < 1<<53
		if whole {
			return int64(v)
		}
	}
	return value
}

func (r *normaliser) normaliseObject(path fieldpath.Path, n *Node, object map[string]any) map[string]any {
	result := make(map[string]any, len(object))
	for name, value := range object {
		child, step := childOf(n, name)
		if value == nil && child != nil && !child.Nullable && child.hasType() {
			r.removedPaths = append(r.removedPaths, path.Append(step))
			continue
		}
		result[name] = r.normaliseValue(path.Append(step), child, value)
	}
	return result
}

func childOf(n *Node, name string) (*Node, any) {
	if n == nil {
		return nil, name
	}
	if child, ok := n.Properties[name]; ok {
		return child, name
	}
	if n.Additional != nil {
		return n.Additional, fieldpath.Key(name)
	}
	return nil, name
}
