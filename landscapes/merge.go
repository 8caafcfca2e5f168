// SPDX-License-Identifier: Apache-2.0

package landscapes

import (
	"maps"
	"slices"

	"github.com/pergola-dev/pergola/internal/suggest"
)

// merge lays one object over another. Maps are merged by key, lists and plain values are replaced,
// and null deletes. Neither input is changed.
func merge(base, over map[string]any) map[string]any {
	result := maps.Clone(base)
	for name, value := range over {
		before, wasMap := result[name].(map[string]any)
		after, isMap := value.(map[string]any)
		switch {
		case value == nil:
			delete(result, name)
		case wasMap && isMap:
			result[name] = merge(before, after)
		default:
			result[name] = value
		}
	}
	return result
}

const ruleRemoval = "landscape/removal"

// misspeltRemovals visits fields that over deletes and base does not have, if base has a similar
// name.
func misspeltRemovals(at string, base, over map[string]any, visit func(field, meant string)) {
	for _, name := range slices.Sorted(maps.Keys(over)) {
		field := name
		if at != "" {
			field = at + "." + name
		}
		before, there := base[name]
		if below, isMap := before.(map[string]any); isMap {
			if above, both := over[name].(map[string]any); both {
				misspeltRemovals(field, below, above, visit)
			}
			continue
		}
		if over[name] != nil || there {
			continue
		}
		if meant := suggest.Closest(name, slices.Collect(maps.Keys(base))); meant != "" && over[meant] == nil {
			if _, removed := over[meant]; !removed {
				visit(field, meant)
			}
		}
	}
}
