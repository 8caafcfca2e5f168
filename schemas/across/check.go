package across

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pergola-dev/pergola/schemas"
	"github.com/pergola-dev/pergola/schemas/structure"
)

// External names an object that exists outside of the landscape: made by hand, by another tool or through the API.
type External struct {
	Kind, Namespace, Name string
}

// matches compares with patterns as path.Match has them: * stands for any text. An empty namespace is that of
// cluster-scoped objects.
func (e External) matches(id identity) bool {
	namespace, err := path.Match(e.Namespace, id.namespace)
	if err != nil || !namespace {
		return false
	}
	name, err := path.Match(e.Name, id.name)
	return err == nil && name && e.Kind == id.kind.Kind
}

// Options of Check.
type Options struct {
	// Now is the time by which versions have expired or not.
	Now time.Time
	// External are the objects that need not be declared.
	External []External
}

// Check gives the findings about a whole landscape, sorted. What is structurally wrong in an object is not its matter: such
// a field is passed over. With Input.Old what was there before and did not change may have expired meanwhile.
func Check(inputs []schemas.Input, opts Options) []schemas.Violation {
	c := &check{index: newIndex(inputs), Options: opts}
	byKind := map[string][]rule{}
	for _, r := range rules() {
		byKind[r.Kind] = append(byKind[r.Kind], r)
	}
	for i := range inputs {
		in := &inputs[i]
		if in.Object == nil {
			continue
		}
		for _, r := range byKind[structure.RulesName(in.Object.GroupVersionKind())] {
			c.rule, c.in = r.Rule, in
			r.check(c)
		}
	}
	schemas.Sort(c.found)
	return c.found
}

// Rules describes the rules, by id and kind: one that is about several kinds is there for each of them.
func Rules() []schemas.Rule {
	var out []schemas.Rule
	for _, r := range rules() {
		out = append(out, r.Rule)
	}
	slices.SortFunc(out, func(a, b schemas.Rule) int { return cmp.Or(cmp.Compare(a.ID, b.ID), cmp.Compare(a.Kind, b.Kind)) })
	return out
}

// rule looks at one object, check.in.
type rule struct {
	schemas.Rule
	check func(*check)
}

// about adds the fields that the rule is about.
func (r rule) about(fields ...string) rule {
	r.Fields = fields
	return r
}

// check is a run over a landscape, at one rule and object.
type check struct {
	Options
	*index
	rule  schemas.Rule
	in    *schemas.Input
	found []schemas.Violation
}

func (c *check) object() map[string]any { return c.in.Object.Object }

// report a finding about a field of the object that is looked at.
func (c *check) report(field string, typ schemas.Type, format string, args ...any) {
	o := c.in.Object
	v := schemas.Violation{
		Severity: c.rule.Severity, Kind: o.GetKind(), Namespace: o.GetNamespace(), Name: o.GetName(),
		Field: field, Type: typ, Rule: c.rule.ID, Message: fmt.Sprintf(format, args...),
	}
	if c.in.Positions != nil {
		p := c.in.Positions.Position(field)
		v.File, v.Line, v.Column = p.File, p.Line, p.Column
	}
	c.found = append(c.found, v)
}

// isExternal is true for what exists outside of the landscape.
func (c *check) isExternal(id identity) bool {
	return slices.ContainsFunc(c.External, func(e External) bool { return e.matches(id) })
}

// place of an object, for messages about another one.
func place(in *schemas.Input) string {
	name := structure.RulesName(in.Object.GroupVersionKind()) + " " + path.Join(in.Object.GetNamespace(), in.Object.GetName())
	if in.Positions == nil {
		return name
	}
	p := in.Positions.Position("")
	if p.File == "" {
		return name
	}
	return fmt.Sprintf("%s (%s:%d)", name, p.File, p.Line)
}

// identity tells objects apart.
type identity struct {
	kind            schema.GroupKind
	namespace, name string
}

func identityOf(o *unstructured.Unstructured) identity {
	return identity{o.GroupVersionKind().GroupKind(), o.GetNamespace(), o.GetName()}
}
