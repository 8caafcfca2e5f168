package change

import "time"

// HandedOver is a declared field that keeps the value of another field manager. It is not a
// difference and is not changed.
type HandedOver struct {
	Cluster string `json:"cluster"`
	Object  Ref    `json:"object"`
	Path    string `json:"path"`
	// Declared and Live are the values; Live is nil if the field was removed.
	Declared any `json:"declared"`
	Live     any `json:"live,omitempty"`
	// By is the field manager that set the field, Since the time of its last write.
	By    string     `json:"by,omitempty"`
	Since *time.Time `json:"since,omitempty"`
	Why   string     `json:"why"`
	// Steps are the parts of the path: field names, and item names for list items.
	Steps []string `json:"-"`
}

// Set writes the live value into a declared object, or removes the field if Live is nil.
func (h HandedOver) Set(object map[string]any) {
	var at any = object
	for i, step := range h.Steps {
		switch x := at.(type) {
		case map[string]any:
			if i < len(h.Steps)-1 {
				at = x[step]
			} else if h.Live == nil {
				delete(x, step)
			} else {
				x[step] = h.Live
			}
		case []any:
			at = itemNamed(x, step)
		}
	}
}

func itemNamed(list []any, name string) any {
	for _, item := range list {
		if m, ok := item.(map[string]any); ok && m["name"] == name {
			return m
		}
	}
	return nil
}
