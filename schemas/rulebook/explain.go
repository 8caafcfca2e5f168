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
	// Default is the API's value for an omitted field; nil for none. If it depends on other fields,
	// it is the default in an object with only the field's parents.
	Default any `json:"default,omitempty"`
	// Values are the allowed values; empty if any value of the type and form is allowed.
	Values []string `json:"values,omitempty"`
	// Form are further constraints in words.
	Form          []string `json:"form,omitempty"`
	Documentation string   `json:"documentation,omitempty"`
	// Fields are the fields of an object, list item or map value.
	Fields []Field `json:"fields,omitempty"`
	// Rules concern the field or its children, Around its parents. Rules for every field of every
	// kind are only listed for the kind.
	Rules  []Mention `json:"rules,omitempty"`
	Around []Mention `json:"rulesAround,omitempty"`
	// Others are unambiguous names of other kinds or versions with the same name.
	Others []string `json:"others,omitempty"`
}

// Field is an entry in a list of fields.
type Field struct {
	Name     string `json:"name"`
	Type     string `json:"type"`
	Required bool   `json:"required"`
}

// Mention is an entry in a list of rules.
type Mention struct {
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
	kind, field, others, err := parse(question)
	if err != nil {
		return nil, err
	}
	e := &Explanation{APIVersion: kind.GVK.GroupVersion().String(), Kind: kind.GVK.Kind, Namespaced: kind.Namespaced, Others: others}
	path, node, required, err := walk(kind, field)
	if err != nil {
		return nil, err
	}
	e.Field, e.Required = path.String(), required
	e.describe(node)
	if e.Default == nil {
		if e.Default, err = filledIn(kind, path); err != nil {
			return nil, err
		}
	}
	rules, err := OfKind(kind.GVK)
	if err != nil {
		return nil, err
	}
	for _, rule := range rules {
		concerns, wider := rule.IsAbout(e.Field)
		m := Mention{ID: rule.ID, Severity: rule.Severity, Scope: rule.Scope, Title: rule.Title, Fields: rule.Fields, Class: rule.Class}
		switch {
		case wider && rule.Kind == "*":
			// Rules for everything are listed for the kind.
		case wider:
			e.Around = append(e.Around, m)
		case concerns:
			e.Rules = append(e.Rules, m)
		}
	}
	return e, nil
}

// walk resolves a field. The returned path has no indices.
func walk(kind *structure.Kind, field string) (path fieldpath.Path, node *structure.Node, required bool, err error) {
	node, required = kind.Root, true
	for _, step := range fieldpath.Parse(strings.ReplaceAll(field, "[]", "")) {
		if _, isIndex := step.(int); isIndex && node.Items != nil {
			continue
		}
		holder, name := node.Held(), fieldpath.Name(step)
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
	switch known := holder.Names(); {
	case len(known) > 0:
		return fmt.Errorf("%s has no field %q%s", where, name, meantOr(name, known, "; its fields are "))
	case holder.Open:
		return fmt.Errorf("what is in %s is not described here: any value is accepted", where)
	}
	return errors.New(where + " has no fields")
}

func (e *Explanation) describe(node *structure.Node) {
	e.Type, e.Documentation, e.Default = typeOf(node), node.Description, node.Default
	held := node.Held()
	e.Values = held.Enum
	e.Form = node.Form()
	if held != node {
		e.Form = append(e.Form, held.Form()...)
	}
	inside := held
	for inside.Additional != nil && len(inside.Properties) == 0 {
		inside = inside.Additional.Held()
	}
	for _, name := range inside.Names() {
		e.Fields = append(e.Fields, Field{Name: name, Type: typeOf(inside.Properties[name]), Required: slices.Contains(inside.Required, name)})
	}
}

func typeOf(n *structure.Node) string {
	switch {
	case n.IntOrString && n.IsQuantity():
		return "quantity"
	case n.IntOrString:
		return "whole number or text"
	case n.Items != nil:
		return "list of " + plural(typeOf(n.Items))
	case n.Additional != nil && len(n.Properties) == 0:
		return "map of " + plural(typeOf(n.Additional))
	}
	switch n.Type {
	case "string":
		return textType(n)
	case "integer":
		return "whole number"
	case "boolean":
		return "true or false"
	case "":
		return "any value"
	}
	return n.Type
}

func textType(n *structure.Node) string {
	switch n.Format {
	case "duration":
		return "duration"
	case "date-time":
		return "time"
	}
	return "text"
}

func plural(what string) string {
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
