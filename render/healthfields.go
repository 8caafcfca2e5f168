// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pergola-dev/pergola/health/custom"
	"github.com/pergola-dev/pergola/internal/suggest"
	"github.com/pergola-dev/pergola/render/strict"
	"github.com/pergola-dev/pergola/schemas"
	"github.com/pergola-dev/pergola/schemas/structure"
)

// checkHealthFields finds fields in health rules that the kind does not have, and values that a
// field never has. With such a rule no object would ever be healthy or progressing.
func (c *landscapeCheck) checkHealthFields() {
	health := c.landscape.Config.Spec.Health
	if health == nil || c.options == nil {
		return
	}
	known := newKindSchemas(*c.options)
	for i, rule := range health.Rules {
		versions := known.schemaVersions(rule.APIGroup, rule.Kind)
		if len(versions) == 0 {
			continue
		}
		for _, e := range []struct{ field, text string }{{"healthy", rule.Healthy}, {"progressing", rule.Progressing}, {"message", rule.Message}} {
			var told []string
			for _, read := range custom.Fields(e.text) {
				wrong := ""
				if e.field == "message" {
					read.IsWholeExpression = false // a message may be of any type
				}
				for _, version := range versions { // the rule is for all versions
					if wrong = fieldReadFault(version.Root, read); wrong == "" {
						break
					}
				}
				if wrong != "" && !slices.Contains(told, wrong) {
					told = append(told, wrong)
					c.configWarning(fmt.Sprintf("spec.health.rules[%d].%s", i, e.field), ruleHealthFields, schemas.TypeNotSupported, "objects of kind %s %s", rule.Kind, wrong)
				}
			}
		}
	}
}

// fieldReadFault describes an invalid read of a field; the result is "" if it is valid or the
// schema leaves it open.
func fieldReadFault(n *structure.Node, read custom.Field) string {
	for i, name := range read.Path {
		next := n.Properties[name]
		switch {
		case name == custom.AnyItem && n.Items != nil:
			next = n.Items
		case name == custom.AnyItem:
			return "" // keys of a map, or an open schema
		case next != nil:
		case n.Additional != nil:
			next = n.Additional
		case n.AllowsUnknownFields || len(n.Properties) == 0:
			return ""
		default:
			hint := "; it has " + strings.Join(n.FieldNames(), ", ")
			if meant := suggest.Closest(name, n.FieldNames()); meant != "" {
				hint = fmt.Sprintf("; did you mean %q?", meant)
			}
			return fmt.Sprintf("have no field %s%s", expressionPath(read.Path[:i+1]), hint)
		}
		n = next
	}
	field := "have a " + expressionPath(read.Path) + " that is never "
	literal, isText := read.Literal.(string)
	last := len(read.Path) - 1
	values := n.Enum
	if last > 1 && slices.Equal(read.Path[last-2:], []string{"conditions", custom.AnyItem, "status"}) {
		values = []string{"True", "False", "Unknown"} // Kubernetes API conventions
	}
	switch kind := literalType(read.Literal); {
	case read.IsWholeExpression && n.Type != "" && n.Type != "boolean":
		return fmt.Sprintf("have a %s of type %s, but the expression must be true or false; compare it", expressionPath(read.Path), n.Type)
	case kind == "" || n.Type == "" || n.IntOrString:
	case kind != n.Type && !(kind == "number" && n.Type == "integer"):
		return fmt.Sprintf("%s%#v: it is of type %s", field, read.Literal, n.Type)
	case isText && len(values) > 0 && !slices.Contains(values, literal):
		return fmt.Sprintf("%s%q: it is one of %s", field, literal, strings.Join(values, ", "))
	}
	return ""
}

// expressionPath writes a path as in an expression.
func expressionPath(path []string) string {
	return "self." + strings.ReplaceAll(strings.Join(path, "."), "."+custom.AnyItem, custom.AnyItem)
}

// literalType is the schema type of a CEL literal; it is "" if unknown.
func literalType(literal any) string {
	switch literal.(type) {
	case string:
		return "string"
	case bool:
		return "boolean"
	case int64, uint64, float64:
		return "number"
	}
	return ""
}

// schemaVersions returns the schemas of a kind in all known versions of a group.
func (k *kindSchemas) schemaVersions(group, kind string) []*strict.Kind {
	var out []*strict.Kind
	for _, gvk := range strict.KubernetesKinds() {
		if gvk.Group == group && gvk.Kind == kind {
			if found := k.schemaOf(gvk); found != nil {
				out = append(out, found)
			}
		}
	}
	k.plurals(group) // reads all kinds
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, defined := range []map[schema.GroupVersionKind]*strict.Kind{k.ownGroups[group], k.fromCharts, k.fromOverlays} {
		for gvk, found := range defined {
			if gvk.Group == group && gvk.Kind == kind {
				out = append(out, found)
			}
		}
	}
	return out
}
