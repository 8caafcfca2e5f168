// SPDX-License-Identifier: Apache-2.0

package rulebook

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/pergola-dev/pergola/schemas"
	"github.com/pergola-dev/pergola/schemas/fieldpath"
	"github.com/pergola-dev/pergola/schemas/structure"
)

// Explanation describes a field, or a kind if Field is "".
type Explanation struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Namespaced bool   `json:"namespaced"`
	Field      string `json:"field"`
	// Type is the type in words, such as "list of objects".
	Type     string `json:"type"`
	Required bool   `json:"required"`
	// Default is the API's value for an omitted field; it is nil for none. If it depends on other
	// fields, it is the default in an object with only the field's parents.
	Default any `json:"default,omitempty"`
	// Values are the allowed values; they are empty if any value of the type and form is allowed.
	Values []string `json:"values,omitempty"`
	// Constraints are further constraints in words.
	Constraints   []string `json:"form,omitempty"`
	Documentation string   `json:"documentation,omitempty"`
	// Fields are the fields of an object, list item or map value.
	Fields []FieldSummary `json:"fields,omitempty"`
	// Rules concern the field or its children, Around its parents. Rules for every field of every
	// kind are only listed for the kind.
	Rules       []RuleSummary `json:"rules,omitempty"`
	ParentRules []RuleSummary `json:"rulesAround,omitempty"`
	// OtherKinds are unambiguous names of other kinds or versions with the same name.
	OtherKinds []string `json:"others,omitempty"`
}

// FieldSummary is an entry in a list of fields.
type FieldSummary struct {
	Name     string `json:"name"`
	Type     string `json:"type"`
	Required bool   `json:"required"`
}

// RuleSummary is an entry in a list of rules.
type RuleSummary struct {
	ID       string           `json:"id"`
	Severity schemas.Severity `json:"severity"`
	Scope    string           `json:"scope"`
	Title    string           `json:"title"`
	Fields   []string         `json:"fields"`
	// Class names the inputs of a finding besides the declarations.
	Class schemas.RuleClass `json:"class"`
}

// Explain answers a question such as Shoot.spec.provider.workers, in which indices are optional.
// Errors about unknown names suggest similar ones.
func Explain(question string) (*Explanation, error) {
	kind, field, others, err := parseFieldReference(question)
	if err != nil {
		return nil, err
	}
	e := &Explanation{APIVersion: kind.GVK.GroupVersion().String(), Kind: kind.GVK.Kind, Namespaced: kind.Namespaced, OtherKinds: others}
	path, node, required, err := resolveField(kind, field)
	if err != nil {
		return nil, err
	}
	e.Field, e.Required = path.String(), required
	e.describeNode(node)
	if e.Default == nil {
		if e.Default, err = functionDefault(kind, path); err != nil {
			return nil, err
		}
	}
	rules, err := RulesOfKind(kind.GVK)
	if err != nil {
		return nil, err
	}
	for _, rule := range rules {
		concerns, wider := rule.IsForField(e.Field)
		m := RuleSummary{ID: rule.ID, Severity: rule.Severity, Scope: rule.Scope, Title: rule.Title, Fields: rule.Fields, Class: rule.Class}
		switch {
		case wider && rule.Kind == "*":
			// Rules for everything are listed for the kind.
		case wider:
			e.ParentRules = append(e.ParentRules, m)
		case concerns:
			e.Rules = append(e.Rules, m)
		}
	}
	return e, nil
}

// resolveField resolves a field. The returned path has no indices.
func resolveField(kind *structure.Kind, field string) (path fieldpath.Path, node *structure.Node, required bool, err error) {
	node, required = kind.Root, true
	for _, step := range fieldpath.Parse(strings.ReplaceAll(field, "[]", "")) {
		if _, isIndex := step.(int); isIndex && node.Items != nil {
			continue
		}
		holder, name := node.InnermostItems(), fieldpath.StepName(step)
		child, isField := holder.Properties[name]
		switch {
		case isField:
			node, required, path = child, slices.Contains(holder.Required, name), path.Append(name)
		case holder.Additional != nil:
			node, required, path = holder.Additional, false, path.Append(fieldpath.Key(name))
		default:
			return nil, nil, false, unknownField(kind, path, name, holder)
		}
	}
	return path, node, required, nil
}

func unknownField(kind *structure.Kind, path fieldpath.Path, name string, holder *structure.Node) error {
	where := kind.GVK.Kind
	if len(path) > 0 {
		where += "." + path.String()
	}
	switch known := holder.FieldNames(); {
	case len(known) > 0:
		return fmt.Errorf("%s has no field %q%s", where, name, suggestionOrList(name, known, "; its fields are "))
	case holder.AllowsUnknownFields:
		return fmt.Errorf("the fields of %s are not described here: any value is accepted", where)
	}
	return errors.New(where + " has no fields")
}

func (e *Explanation) describeNode(node *structure.Node) {
	e.Type, e.Documentation, e.Default = typeWords(node), node.Description, node.Default
	held := node.InnermostItems()
	e.Values = held.Enum
	e.Constraints = node.Constraints()
	if held != node {
		e.Constraints = append(e.Constraints, held.Constraints()...)
	}
	inside := held
	for inside.Additional != nil && len(inside.Properties) == 0 {
		inside = inside.Additional.InnermostItems()
	}
	for _, name := range inside.FieldNames() {
		e.Fields = append(e.Fields, FieldSummary{Name: name, Type: typeWords(inside.Properties[name]), Required: slices.Contains(inside.Required, name)})
	}
}

func typeWords(n *structure.Node) string {
	switch {
	case n.IntOrString && n.IsQuantity():
		return "quantity"
	case n.IntOrString:
		return "whole number or text"
	case n.Items != nil:
		return "list of " + pluralOf(typeWords(n.Items))
	case n.Additional != nil && len(n.Properties) == 0:
		return "map of " + pluralOf(typeWords(n.Additional))
	}
	switch n.Type {
	case "string":
		return textTypeWords(n)
	case "integer":
		return "whole number"
	case "boolean":
		return "true or false"
	case "":
		return "any value"
	}
	return n.Type
}

func textTypeWords(n *structure.Node) string {
	switch n.Format {
	case "duration":
		return "duration"
	case "date-time":
		return "time"
	}
	return "text"
}

func pluralOf(what string) string {
	first, rest, compound := strings.Cut(what, " of ")
	switch {
	case what == "text" || what == "any value" || strings.Contains(what, " or "):
		return what
	case compound:
		return first + "s of " + rest
	case strings.HasSuffix(what, "y"):
		return strings.TrimSuffix(what, "y") + "ies"
	}
	return what + "s"
}
