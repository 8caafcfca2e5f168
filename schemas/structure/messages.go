// SPDX-License-Identifier: Apache-2.0

package structure

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/pergola-dev/pergola/internal/secretwords"
)

// typeWords returns the type of a node for a sentence.
func (n *Node) typeWords() string {
	switch n.Type {
	case "object":
		if n.IsMap() {
			return "a map"
		}
		return "an object"
	case "array":
		return "a list"
	case "string":
		if len(n.Enum) > 0 {
			return joinAlternatives(n.Enum)
		}
		if n.Format == formatDuration {
			return "a duration such as 1h30m"
		}
		return "text"
	case "integer":
		return "a whole number"
	case "number":
		return "a number"
	case "boolean":
		return "true or false"
	}
	return "a value"
}

// nodeForKey returns the schema of a map value; it is sensitive if the key names a secret.
func (n *Node) nodeForKey(key string) *Node {
	if n.Sensitive || n.Type == "object" || n.Type == "array" || !secretwords.HasSecretWord(key) {
		return n
	}
	secret := *n
	secret.Sensitive = true
	return &secret
}

// describeValue returns the found value, shortened to show a fault but not a whole document.
func (n *Node) describeValue(value any) string {
	if n.Sensitive {
		return valueTypeWords(value)
	}
	switch v := value.(type) {
	case nil:
		return "null"
	case map[string]any:
		return "an object"
	case []any:
		return "a list"
	case string:
		runes := []rune(v)
		if len(runes) > 60 {
			v = string(runes[:60]) + "…"
		}
		if _, err := strconv.ParseFloat(v, 64); err == nil || v == "true" || v == "false" {
			if n.Type == "array" || n.Type == "object" {
				return fmt.Sprintf("the text %q", v)
			}
			return fmt.Sprintf("the text %q (leave out the quotes)", v)
		}
		return fmt.Sprintf("the text %q", v)
	case bool:
		return fmt.Sprintf("%v", v)
	case float64:
		if isIntegerOverflow(v) {
			return "a whole number of more than 64 bit"
		}
		return fmt.Sprintf("the number %v", v)
	case int64, int:
		return fmt.Sprintf("the number %v", v)
	}
	return valueTypeWords(value)
}

// valueTypeWords returns the type of a value without its content.
func valueTypeWords(value any) string {
	switch value.(type) {
	case nil:
		return "null"
	case map[string]any:
		return "an object"
	case []any:
		return "a list"
	case string:
		return "text"
	case bool:
		return "true or false"
	case float64, int64, int:
		return "a number"
	}
	return fmt.Sprintf("a value of the Go type %T", value)
}

// isIntegerOverflow reports whether a number is an integer beyond 64 bit, which YAML and JSON
// readers return as a float.
func isIntegerOverflow(value any) bool {
	number, ok := value.(float64)
	return ok && (number < math.MinInt64 || number >= -math.MinInt64)
}

const integerOverflowMessage = "is a whole number of more than 64 bit, which the API cannot hold"

// quoteText returns the wrong text, or a placeholder if it may be secret.
func (n *Node) quoteText(text string) string {
	if n.Sensitive || n.Format == "byte" { // base64 hides its content
		return "the value (not shown)"
	}
	if runes := []rune(text); len(runes) > 60 {
		text = string(runes[:60]) + "…"
	}
	return strconv.Quote(text)
}

// quotesHint suggests quotes if YAML reads an intended text as another type.
func (n *Node) quotesHint(value any) string {
	switch value.(type) {
	case bool, int64, int, float64:
		if n.Type == "string" && len(n.Enum) == 0 && n.Format != formatDuration {
			return "; put it in quotes"
		}
	}
	return ""
}

func joinAlternatives(values []string) string {
	quoted := make([]string, len(values))
	for i, value := range values {
		quoted[i] = strconv.Quote(value)
	}
	if len(quoted) == 1 {
		return quoted[0]
	}
	return strings.Join(quoted[:len(quoted)-1], ", ") + " or " + quoted[len(quoted)-1]
}

func pluralOf(what string, count int64) string {
	if count != 1 {
		return what
	}
	if what == "entries" {
		return "entry"
	}
	return strings.TrimSuffix(what, "s")
}

// patternWords explains common patterns, and quotes others.
func (n *Node) patternWords() string {
	switch {
	case n.IsQuantity():
		return "is not a quantity such as 500m, 2 or 10Gi"
	case strings.Contains(n.Pattern.String(), "[0-5][0-9][0-5][0-9][+-]"):
		return "is not a time of day with a time zone such as 220000+0100"
	case strings.Contains(n.Pattern.String(), "(([0-9]+)ms)?)"):
		return "is not a duration such as 30s, 5m or 1h30m"
	}
	return "does not have the form " + n.Pattern.String()
}

// bounds returns the smallest and largest number, from minimum, maximum and format.
func (n *Node) bounds() (low, high float64) {
	low, high = math.Inf(-1), math.Inf(1)
	switch n.Format {
	case "int32":
		low, high = math.MinInt32, math.MaxInt32
	case "int64":
		low, high = math.MinInt64, math.MaxInt64
	}
	if n.Minimum != nil {
		low = *n.Minimum
	}
	if n.Maximum != nil {
		high = *n.Maximum
	}
	return low, high
}

func (n *Node) rangeWords() string {
	low, high := n.bounds()
	number := func(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }
	least, most := "at least ", "at most "
	if n.ExclusiveMin {
		least = "more than "
	}
	if n.ExclusiveMax {
		most = "less than "
	}
	switch {
	case math.IsInf(high, 1) || n.Maximum == nil && n.Minimum != nil:
		return "must be " + least + number(low)
	case math.IsInf(low, -1) || n.Minimum == nil && n.Maximum != nil:
		return "must be " + most + number(high)
	}
	return "must be " + least + number(low) + " and " + most + number(high)
}

// Constraints returns the constraints besides the type, in words for documentation.
func (n *Node) Constraints() []string {
	var words []string
	switch {
	case n.Pattern != nil && !n.IsQuantity():
		words = append(words, "has the form "+n.Pattern.String())
	case n.Format == formatDuration:
		words = append(words, "is a duration such as 30s, 10m or 1h30m")
	case n.Format == formatDateTime:
		words = append(words, "is a time such as 2025-01-31T08:00:00Z")
	case n.Format == formatByte:
		words = append(words, "is base64")
	case n.Format == formatCIDR:
		words = append(words, "is a range of addresses such as 10.0.0.0/16")
	case n.Format == formatIPv4 || n.Format == formatIPv6:
		words = append(words, "is an "+strings.Replace(n.Format, "ip", "IP", 1)+" address")
	}
	if n.Minimum != nil || n.Maximum != nil {
		words = append(words, n.rangeWords())
	}
	words = append(words, countConstraints("character", n.MinLength, n.MaxLength)...)
	words = append(words, countConstraints("item", n.MinItems, n.MaxItems)...)
	words = append(words, countConstraints("entry", n.MinProperties, n.MaxProperties)...)
	switch n.ListType {
	case "map":
		words = append(words, "the key of an item is "+strings.Join(n.ListKeys, ", "))
	case "set":
		words = append(words, "each item is given once")
	}
	return words
}

func countConstraints(what string, minimum, maximum *int64) []string {
	many := func(n int64) string {
		if n == 1 {
			return "1 " + what
		}
		return fmt.Sprintf("%d %s", n, strings.Replace(what+"s", "ys", "ies", 1))
	}
	var words []string
	if minimum != nil && *minimum > 0 {
		words = append(words, "at least "+many(*minimum))
	}
	if maximum != nil {
		words = append(words, "at most "+many(*maximum))
	}
	return words
}
