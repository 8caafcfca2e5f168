// SPDX-License-Identifier: Apache-2.0

package structure

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/pergola-dev/pergola/internal/suggest"
	"github.com/pergola-dev/pergola/schemas/fieldpath"
)

// Finding is a difference between an object and its schema. Type has the values of schemas.Type.
type Finding struct {
	Path    fieldpath.Path
	Type    string
	Message string
	// IntendedPath is the probably intended field for an unknown one; it is nil if there is none or
	// it is set.
	IntendedPath fieldpath.Path
}

// Check compares an object with its schema and returns all findings in the order of the fields. The
// object must have unstructured content: map[string]any, []any, string, bool, int64, float64, nil.
func (k *Kind) Check(object map[string]any) []Finding {
	c := &checker{kind: k.GVK.Kind, root: k.Root, reportsMissingLeaves: k.IsAggregated()}
	c.checkValue(nil, k.Root, object)
	return c.findings
}

type checker struct {
	kind     string
	root     *Node
	findings []Finding
	// reportsMissingLeaves reports the required fields of a missing object instead of the object.
	// The aggregated API server decodes into structs, in which the object exists with empty fields.
	reportsMissingLeaves bool
}

func (c *checker) addFinding(path fieldpath.Path, typ, format string, args ...any) {
	c.findings = append(c.findings, Finding{Path: slices.Clone(path), Type: typ, Message: fmt.Sprintf(format, args...)})
}

func (c *checker) checkValue(path fieldpath.Path, n *Node, value any) {
	if value == nil {
		if !n.Nullable && n.hasType() {
			c.addFinding(path, "TypeInvalid", "must be %s, but is null", n.typeWords())
		}
		return
	}
	if n.IntOrString {
		c.checkIntOrString(path, n, value)
		return
	}
	switch n.Type {
	case "object":
		if object, ok := value.(map[string]any); ok {
			c.checkObject(path, n, object)
			return
		}
	case "array":
		if list, ok := value.([]any); ok {
			c.checkList(path, n, list)
			return
		}
	case "string":
		if text, ok := value.(string); ok {
			c.checkText(path, n, text)
			return
		}
	case "boolean":
		if _, ok := value.(bool); ok {
			return
		}
	case "integer", "number":
		if c.checkNumber(path, n, value) {
			return
		}
	default:
		return
	}
	c.addFinding(path, "TypeInvalid", "must be %s, but is %s%s", n.typeWords(), n.describeValue(value), n.quotesHint(value))
}

func (c *checker) checkObject(path fieldpath.Path, n *Node, object map[string]any) {
	for _, name := range n.Required {
		if value, ok := object[name]; !ok || value == nil {
			c.reportMissing(path.Append(name), n.Properties[name])
		}
	}
	names := make([]string, 0, len(object))
	for name := range object {
		names = append(names, name)
	}
	slices.Sort(names)
	c.checkCount(path, "entries", len(names), n.MinProperties, n.MaxProperties)
	for _, name := range names {
		child, known := n.Properties[name]
		switch {
		case known && object[name] == nil && !child.Nullable:
			// Null means absent.
		case known:
			c.checkValue(path.Append(name), child, object[name])
		case n.Additional != nil:
			c.checkMapValue(path.Append(fieldpath.Key(name)), n.Additional, name, object[name])
		case !n.AllowsUnknownFields && (len(n.Properties) > 0 || n.Additional != nil || n.Type == "object"):
			c.reportUnknownField(path.Append(name), name, n, object)
		}
	}
}

// checkMapValue checks a map value. If the check fails and the key names a secret, the value is
// hidden.
func (c *checker) checkMapValue(path fieldpath.Path, n *Node, key string, value any) {
	found := len(c.findings)
	c.checkValue(path, n, value)
	if len(c.findings) == found {
		return
	}
	if secret := n.nodeForKey(key); secret != n {
		c.findings = c.findings[:found]
		c.checkValue(path, secret, value)
	}
}

func (c *checker) reportUnknownField(path fieldpath.Path, name string, n *Node, object map[string]any) {
	if n.HidesUnknownNames && !suggest.IsMisspelt(name, n.FieldNames()) {
		// The unknown name may be a misplaced value: hide it in the path, too.
		if len(c.findings) == 0 || c.findings[len(c.findings)-1].Message != hiddenNameMessage(n) {
			c.addFinding(path[:len(path)-1], "Forbidden", "%s", hiddenNameMessage(n))
		}
		return
	}
	if instead := replacementOf(c.kind, path); instead != "" {
		c.addFinding(path, "Forbidden", "the field %q no longer exists; %s", name, instead)
		return
	}
	if len(path) == 2 && path[0] == "metadata" && name == "namespace" {
		c.addFinding(path, "Forbidden", "objects of kind %s are in no namespace; remove it", c.kind)
		return
	}
	hint := ""
	var meant fieldpath.Path
	if word := yaml11Value(name); word != "" && n.Properties[word] != nil {
		hint = fmt.Sprintf("; the definition has %q, because YAML 1.1 reads %s so without quotes; put it in quotes there", word, name)
	} else if better := suggest.Closest(name, n.FieldNames()); better != "" {
		hint = fmt.Sprintf("; did you mean %q?", better)
		if object[better] == nil {
			meant = slices.Clone(path[:len(path)-1].Append(better))
		}
	} else if there := c.root.findMisplaced(path); len(there) == 1 && !slices.Contains([]string{"apiVersion", "kind", "metadata", "spec", "status"}, name) {
		hint = fmt.Sprintf("; did you mean %s at the top of the object?", there)
	} else if len(there) > 1 {
		hint = fmt.Sprintf("; did you mean %s?", there)
	} else if len(n.Properties) > 0 && len(n.Properties) <= 12 {
		hint = "; known here: " + strings.Join(n.FieldNames(), ", ")
	}
	c.addFinding(path, "Forbidden", "the field %q does not exist%s", name, hint)
	c.findings[len(c.findings)-1].IntendedPath = meant
}

// yaml11Value returns the value of an unquoted word in YAML 1.1, or "" if it is a plain string.
func yaml11Value(name string) string {
	switch strings.ToLower(name) {
	case "n", "no", "off":
		return "false"
	case "y", "yes", "on":
		return "true"
	}
	return ""
}

func hiddenNameMessage(n *Node) string {
	return "has a field that does not exist, whose name is not shown; known here: " + strings.Join(n.FieldNames(), ", ")
}

func (c *checker) reportMissing(path fieldpath.Path, n *Node) {
	if c.reportsMissingLeaves && n != nil && len(n.Required) > 0 && !isSpecOrMetadata(path) {
		for _, name := range n.Required {
			c.reportMissing(path.Append(name), n.Properties[name])
		}
		return
	}
	if n != nil && len(n.Enum) > 0 {
		c.addFinding(path, "Required", "must be set, to %s", joinAlternatives(n.Enum))
		return
	}
	c.addFinding(path, "Required", "must be set")
}

// isSpecOrMetadata reports whether the path is spec or metadata. An object without them is
// incomplete, not an object with empty fields.
func isSpecOrMetadata(path fieldpath.Path) bool {
	return len(path) == 1 && (path[0] == "spec" || path[0] == "metadata")
}

func (c *checker) checkList(path fieldpath.Path, n *Node, list []any) {
	c.checkCount(path, "items", len(list), n.MinItems, n.MaxItems)
	if n.Items == nil {
		return
	}
	for i, item := range list {
		c.checkValue(path.Append(i), n.Items, item)
	}
}

func (c *checker) checkCount(path fieldpath.Path, what string, count int, minimum, maximum *int64) {
	if minimum != nil && int64(count) < *minimum {
		if count == 0 {
			c.addFinding(path, "Invalid", "must not be empty: at least %d %s", *minimum, pluralOf(what, *minimum))
		} else {
			c.addFinding(path, "Invalid", "has %d %s, but must have at least %d", count, what, *minimum)
		}
	}
	if maximum != nil && int64(count) > *maximum {
		c.addFinding(path, "TooMany", "has %d %s, but may have at most %d", count, what, *maximum)
	}
}

func (c *checker) checkIntOrString(path fieldpath.Path, n *Node, value any) {
	switch v := value.(type) {
	case string:
		c.checkText(path, n, v)
	case int64, int:
	case float64:
		if n.AllowsFraction {
			return
		}
		if isIntegerOverflow(v) {
			c.addFinding(path, "Invalid", integerOverflowMessage+"; put it in quotes")
		} else if v != math.Trunc(v) {
			c.addFinding(path, "TypeInvalid", "must be a whole number or text, but is %v; put it in quotes", v)
		}
	default:
		c.addFinding(path, "TypeInvalid", "must be a whole number or text, but is %s", n.describeValue(value))
	}
}

func (c *checker) checkText(path fieldpath.Path, n *Node, text string) {
	length := int64(utf8.RuneCountInString(text))
	switch {
	case len(n.Enum) > 0 && !slices.Contains(n.Enum, text):
		hint := ""
		if better := suggest.Closest(text, n.Enum); better != "" && text != "" {
			hint = fmt.Sprintf("; did you mean %q?", better)
		}
		c.addFinding(path, "NotSupported", "%s is not supported; use %s%s", n.quoteText(text), joinAlternatives(n.Enum), hint)
	case n.MinLength != nil && length < *n.MinLength && length == 0:
		c.addFinding(path, "Required", "must not be empty")
	case n.MinLength != nil && length < *n.MinLength:
		c.addFinding(path, "Invalid", "has %d characters, but must have at least %d", length, *n.MinLength)
	case n.MaxLength != nil && length > *n.MaxLength:
		c.addFinding(path, "TooLong", "has %d characters, but may have at most %d", length, *n.MaxLength)
	case n.Pattern != nil && !n.Pattern.MatchString(text):
		c.addFinding(path, "Invalid", "%s %s", n.quoteText(text), n.patternWords())
	default:
		if words := checkFormat(n.Format, text); words != "" {
			c.addFinding(path, "Invalid", "%s %s", n.quoteText(text), words)
		}
	}
}

// checkNumber returns false if the value is not a number of the wanted type.
func (c *checker) checkNumber(path fieldpath.Path, n *Node, value any) bool {
	var number float64
	switch v := value.(type) {
	case int64:
		number = float64(v)
	case int:
		number = float64(v)
	case float64:
		number = v
		if n.Type == "integer" && v != math.Trunc(v) {
			return false
		}
	default:
		return false
	}
	switch low, high := n.bounds(); {
	case n.Type == "integer" && isIntegerOverflow(value):
		c.addFinding(path, "Invalid", integerOverflowMessage)
	case number < low || n.ExclusiveMin && number == low:
		c.addFinding(path, "Invalid", "%v is too small: %s", value, n.rangeWords())
	case number > high || n.ExclusiveMax && number == high:
		c.addFinding(path, "Invalid", "%v is too large: %s", value, n.rangeWords())
	}
	return true
}
