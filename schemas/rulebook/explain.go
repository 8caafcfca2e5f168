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

// Explanation says what there is to know of a field, or of a kind where Field is "".
type Explanation struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Namespaced bool   `json:"namespaced"`
	Field      string `json:"field"`
	// Type is the type in words, such as "list of objects".
	Type     string `json:"type"`
	Required bool   `json:"required"`
	// Default is the value that the API fills in where the field is left out; nil for none. Some
	// defaults depend on other fields: this is the one of an object that has nothing but what is
	// around the field.
	Default any `json:"default,omitempty"`
	// Values are all that are allowed; none listed means that any of the type and form is.
	Values []string `json:"values,omitempty"`
	// Form says in words what else a value has to hold.
	Form          []string `json:"form,omitempty"`
	Documentation string   `json:"documentation,omitempty"`
	// Fields are those of an object, of the items of a list, or of the values of a map.
	Fields []Field `json:"fields,omitempty"`
	// Rules are about the field or what is in it, Around about what it is in. Those about every
	// field of every kind are there for the kind only.
	Rules  []Mention `json:"rules,omitempty"`
	Around []Mention `json:"rulesAround,omitempty"`
	// Others are kinds of the same name, or other versions of it, under names that tell them apart.
	Others []string `json:"others,omitempty"`
}

// Field is one in a list of fields.
type Field struct {
	Name     string `json:"name"`
	Type     string `json:"type"`
	Required bool   `json:"required"`
}

// Mention is a rule in a list.
type Mention struct {
	ID       string           `json:"id"`
	Severity schemas.Severity `json:"severity"`
	Scope    string           `json:"scope"`
	Title    string           `json:"title"`
	Fields   []string         `json:"fields"`
	// Class says what the verdict depends on besides the declarations.
	Class schemas.Class `json:"class"`
}

// Explain answers a question such as Shoot.spec.provider.workers. Indices may be left out. The
// error tells what is not known, with a hint at what was probably meant.
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
		concerns, wider := rule.Concerns(e.Field)
		m := Mention{ID: rule.ID, Severity: rule.Severity, Scope: rule.Scope, Title: rule.Title, Fields: rule.Fields, Class: rule.Class}
		switch {
		case wider && rule.Kind == "*":
			// What holds for everything is said of the kind.
		case wider:
			e.Around = append(e.Around, m)
		case concerns:
			e.Rules = append(e.Rules, m)
		}
	}
	return e, nil
}

// walk follows the names of fields. Indices are left out of the path that it gives.
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
