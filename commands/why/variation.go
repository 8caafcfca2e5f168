// SPDX-License-Identifier: Apache-2.0

package why

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// alternativeValues returns replacements of the same form, so that the component can use them. The
// last one removes the value.
func alternativeValues(value any) []any {
	out := []any{alternativeValue(value)}
	if list, ok := value.([]any); ok && len(list) > 1 {
		out = append(out, withoutLastItem(value))
	}
	return append(out, removedValue{})
}

// withoutLastItem returns a list without its last item; other values stay.
func withoutLastItem(value any) any {
	if list, ok := value.([]any); ok && len(list) > 1 {
		return list[:len(list)-1]
	}
	return value
}

var (
	numberPattern  = regexp.MustCompile(`[0-9]+`)
	versionPattern = regexp.MustCompile(`^v?[0-9]+\.[0-9]+(\.[0-9]+)?$`)
)

// alternativeValue returns a value of the same form with different parts.
func alternativeValue(value any) any {
	switch v := value.(type) {
	case bool:
		return !v
	case int64:
		return v + 1
	case int:
		return v + 1
	case float64:
		return v + 1
	case string:
		return textVariation(v)
	case []any:
		out := make([]any, len(v))
		for i, item := range v {
			out[i] = alternativeValue(item)
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, item := range v {
			out[key] = alternativeValue(item)
		}
		return out
	}
	return "x"
}

// textVariation increments the last number of a version, or the first one of a quantity, a duration
// or an address. Other text gets a letter more.
func textVariation(text string) string {
	found := numberPattern.FindAllStringIndex(text, -1)
	if len(found) == 0 || found[0][0] != 0 && !versionPattern.MatchString(text) {
		return text + "x"
	}
	at := found[0]
	switch {
	case versionPattern.MatchString(text):
		at = found[len(found)-1]
	case strings.Contains(text, "/") && len(found) > 2: // a network: its second number
		at = found[1]
	}
	n, err := strconv.Atoi(text[at[0]:at[1]])
	if err != nil {
		return text + "x"
	}
	if n++; n == 256 {
		n = 1
	}
	return fmt.Sprintf("%s%d%s", text[:at[0]], n, text[at[1]:])
}
