package landscapes

import "maps"

// merge lays one object over another: maps are merged key by key, lists and plain values replace what was there, and
// null deletes. Neither input is changed.
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
