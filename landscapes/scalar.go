// SPDX-License-Identifier: Apache-2.0

package landscapes

import (
	"math"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// scalarValue returns the value of a plain YAML node as kubectl reads it. YAML 1.1 applies: yes,
// no, on, off, y and n are true and false. problem is set if the value cannot be part of an API
// object.
func scalarValue(node *yaml.Node) (value any, problem string) {
	switch node.ShortTag() {
	case "!!null":
		return nil, ""
	case "!!str", "!!timestamp", "!!merge":
		if node.Style == 0 {
			if value, ok := yaml11Boolean(node.Value); ok {
				return value, ""
			}
		}
		return node.Value, ""
	case "!!bool":
		var value bool
		if err := node.Decode(&value); err != nil {
			return nil, "is not true or false"
		}
		return value, ""
	case "!!int":
		var value int64
		if err := node.Decode(&value); err == nil {
			return value, ""
		}
		number, err := strconv.ParseFloat(strings.ReplaceAll(node.Value, "_", ""), 64)
		if err != nil {
			return nil, "is not a number that fits 64 bits"
		}
		return number, ""
	case "!!float":
		var value float64
		if err := node.Decode(&value); err != nil || math.IsInf(value, 0) || math.IsNaN(value) {
			return nil, "is not a finite number"
		}
		return value, ""
	case "!!binary":
		return nil, "has the tag !!binary, which API objects do not know; write the base64 text in quotes"
	}
	return nil, unknownTag
}

// unknownTag omits the tag: it may be an unquoted value.
const (
	unknownTag     = "has a tag" + unknownTagHint
	unknownTagHint = ", which API objects do not know; text that begins with ! needs quotes"
)

func yaml11Boolean(text string) (value, ok bool) {
	switch text {
	case "y", "Y", "yes", "Yes", "YES", "on", "On", "ON":
		return true, true
	case "n", "N", "no", "No", "NO", "off", "Off", "OFF":
		return false, true
	}
	return false, false
}
