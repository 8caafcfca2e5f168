package structure

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// wanted names the type of a node in a sentence.
func (n *Node) wanted() string {
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
			return alternatives(n.Enum)
		}
		if n.Format == "duration" {
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

// described names the value that was found, shortened: what is written wrong must be visible, a whole document must not.
func described(value any) string {
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
			return fmt.Sprintf("the text %q (leave out the quotes)", v)
		}
		return fmt.Sprintf("the text %q", v)
	case bool:
		return fmt.Sprintf("%v", v)
	case float64, int64, int:
		return fmt.Sprintf("the number %v", v)
	}
	return "of another type"
}

func alternatives(values []string) string {
	quoted := make([]string, len(values))
	for i, value := range values {
		quoted[i] = strconv.Quote(value)
	}
	if len(quoted) == 1 {
		return quoted[0]
	}
	return strings.Join(quoted[:len(quoted)-1], ", ") + " or " + quoted[len(quoted)-1]
}

func plural(what string, count int64) string {
	if count != 1 {
		return what
	}
	if what == "entries" {
		return "entry"
	}
	return strings.TrimSuffix(what, "s")
}

// patternWords explains patterns that occur in many fields, and shows the others.
func (n *Node) patternWords() string {
	switch {
	case n.IntOrString && strings.Contains(n.Pattern.String(), "KMGTPE"):
		return "is not a quantity such as 500m, 2 or 10Gi"
	case strings.Contains(n.Pattern.String(), "[0-5][0-9][0-5][0-9][+-]"):
		return "is not a time of day with a time zone such as 220000+0100"
	}
	return "does not have the form " + n.Pattern.String()
}

const durationWords = "is not a duration such as 30s, 10m or 1h30m"

// checkFormat gives words about a text that does not have the format, or "".
func checkFormat(format, text string) string {
	switch format {
	case "date-time":
		if _, err := time.Parse(time.RFC3339, text); err != nil {
			return "is not a time such as 2025-01-31T08:00:00Z"
		}
	case "duration":
		if _, err := time.ParseDuration(text); err != nil {
			return durationWords
		}
	}
	return ""
}

// bounds gives the smallest and the largest number, from minimum, maximum and the width of the format.
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
