// SPDX-License-Identifier: Apache-2.0

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
	// Manager is the field manager that set the field; LastWrite is the time of its last write.
	Manager   string     `json:"by,omitempty"`
	LastWrite *time.Time `json:"since,omitempty"`
	Reason    string     `json:"why"`
	// PathSegments are the parts of the path: field names, and item names for list items.
	PathSegments []string `json:"-"`
}

// WriteLive writes the live value into a declared object, or removes the field if Live is nil.
func (h HandedOver) WriteLive(object map[string]any) {
	var at any = object
	for i, step := range h.PathSegments {
		switch x := at.(type) {
		case map[string]any:
			if i < len(h.PathSegments)-1 {
				at = x[step]
			} else if h.Live == nil {
				delete(x, step)
			} else {
				x[step] = h.Live
			}
		case []any:
			at = findItem(x, step)
		}
	}
}

func findItem(list []any, name string) any {
	for _, item := range list {
		if m, ok := item.(map[string]any); ok && m["name"] == name {
			return m
		}
	}
	return nil
}
