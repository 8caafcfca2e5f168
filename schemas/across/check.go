package across

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"path"
	"runtime"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pergola-dev/pergola/internal/panics"
	"github.com/pergola-dev/pergola/schemas"
	"github.com/pergola-dev/pergola/schemas/kept"
	"github.com/pergola-dev/pergola/schemas/mutation"
	"github.com/pergola-dev/pergola/schemas/structure"
)

// External names an object outside the landscape, made by hand, by another tool or through the API.
type External struct {
	Kind, Namespace, Name string
}

// Matches compares an object with the patterns of e, in the syntax of path.Match. Cluster-scoped
// objects have an empty namespace.
func (e External) Matches(kind, namespace, name string) bool {
	in, err := path.Match(e.Namespace, namespace)
	if err != nil || !in {
		return false
	}
	called, err := path.Match(e.Name, name)
	return err == nil && called && e.Kind == kind
}

// Options of Check.
type Options struct {
	// Now decides which versions have expired.
	Now time.Time
	// External are the objects that need not be declared.
	External []External
	// Rules returns the findings of the single-object rules. Check applies them to Shoots with the
	// values that the API fills in. Nil skips this step.
	Rules func(schemas.Input) []schemas.Violation
	// OnlyThere reports whether an object serves only as the target of references and is not
	// checked itself; nil checks all objects.
	OnlyThere func(*schemas.Input) bool
	// Kept caches the results of objects between runs; nil disables caching.
	Kept *kept.Store
}

// Check returns the sorted findings about a landscape. It ignores structural faults, and tolerates
// expired versions that an object (Input.Old) had before.
func Check(inputs []schemas.Input, opts Options) []schemas.Violation {
	c := &check{index: newIndex(inputs), Options: opts, byKind: map[string][]rule{}}
	for _, r := range rules() {
		c.byKind[r.Kind] = append(c.byKind[r.Kind], r)
	}
	keys, records := c.recall(inputs)
	for _, i := range judgingOrder(inputs) {
		in := &inputs[i]
		if opts.OnlyThere != nil && opts.OnlyThere(in) {
			continue
		}
		if in.IsDeclared() && !c.still(in, records[i].clean) {
			records[i].clean = c.look(in)
			if opts.Kept != nil {
				opts.Kept.Put(keys[i], records[i].write())
			}
		}
	}
	schemas.SortViolations(c.found)
	return slices.Compact(c.found)
}

// judgingOrder returns the indices of Gardens, then of other objects, then of Shoots. If two
// objects exclude each other, the later one gets the finding: Shoots change more easily than Seeds,
// and Seeds more easily than Gardens.
func judgingOrder(inputs []schemas.Input) []int {
	ranks := make([]int, len(inputs))
	order := make([]int, len(inputs))
	for i := range inputs {
		order[i] = i
		switch identityOf(&inputs[i]).kind {
		case kindGarden:
			ranks[i] = 0
		case kindShoot:
			ranks[i] = 2
		default:
			ranks[i] = 1
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(ranks[a], ranks[b]) })
	return order
}

// keyOf returns the digest of all that a record depends on, except the answers to its questions.
func (c *check) keyOf(in *schemas.Input) kept.Key {
	if c.Kept == nil {
		return kept.Key{}
	}
	own := in.Digest()
	w := &kept.Writer{}
	w.Text("across")
	w.Key(own)
	for _, e := range c.External {
		for _, text := range []string{e.Kind, e.Namespace, e.Name} {
			w.Text(text)
		}
	}
	return sha256.Sum256(w.Bytes())
}

// recall reads the cached records of the objects in parallel and indexes the Projects. It returns
// the keys, too.
func (c *check) recall(inputs []schemas.Input) ([]kept.Key, []record) {
	keys, records := make([]kept.Key, len(inputs)), make([]record, len(inputs))
	var group panics.Group
	size := max(1, (len(inputs)+runtime.GOMAXPROCS(0)-1)/runtime.GOMAXPROCS(0))
	for start := 0; start < len(inputs); start += size {
		group.Go(func() error {
			for i := start; i < min(start+size, len(inputs)); i++ {
				if in := &inputs[i]; in.IsDeclared() {
					keys[i] = c.keyOf(in)
					records[i] = c.kept(in, keys[i])
				}
			}
			return nil
		})
	}
	_ = group.Wait() // readers of the cache return no errors
	for i := range inputs {
		c.addProject(&inputs[i], records[i].namespace)
	}
	return keys, records
}

// kept returns the cached record of an object. If there is none, the record has only the namespace
// of a Project.
func (c *check) kept(in *schemas.Input, key kept.Key) record {
	if known, ok := c.recorded(key); ok {
		return known
	}
	if c.Kept != nil {
		// A new object without findings has none as an unchanged object either.
		if created, ok := in.AsNew(); ok {
			if known, ok := c.recorded(c.keyOf(&created)); ok {
				return known
			}
		}
	}
	if identityOf(in).kind == kindProject {
		return record{namespace: text(in.Content().Object, "spec", "namespace")}
	}
	return record{}
}

func (c *check) recorded(key kept.Key) (record, bool) {
	data, ok := c.Kept.Get(key)
	if !ok {
		return record{}, false
	}
	return readRecord(data)
}

// still reports whether nothing changed that the clean result of an object depends on. It also
// registers the unique values of the object.
func (c *check) still(in *schemas.Input, before *notes) bool {
	if before == nil || c.answersTo(before.questions) != before.answers {
		return false
	}
	for _, u := range before.uses {
		if first := c.uses[u]; first != nil && first != in && !u.isShared() {
			return false
		}
		if other := c.uses[use{contradictions[u.what], u.value}]; other != nil && other != in {
			return false
		}
	}
	for _, u := range before.uses {
		if c.uses[u] == nil {
			c.uses[u] = in
		}
	}
	return true
}

// look runs all rules of an object. It returns notes for the cache if there are no findings.
func (c *check) look(in *schemas.Input) *notes {
	before := len(c.found)
	c.noted = &notes{}
	gvk, _, _ := in.Identity()
	for _, r := range c.byKind[structure.RulesName(gvk)] {
		c.rule, c.in = r.Rule, in
		r.check(c)
	}
	if gvk.GroupKind() == kindShoot {
		c.rulesForFilled()
	}
	noted := c.noted
	c.noted = nil
	if len(c.found) > before || c.Kept == nil {
		return nil
	}
	noted.answers = c.answersTo(noted.questions)
	return noted
}

// Rules describes the rules, sorted by id and kind. A rule for several kinds has an entry for each.
func Rules() []schemas.Rule {
	var out []schemas.Rule
	for _, r := range rules() {
		out = append(out, r.Rule)
	}
	slices.SortFunc(out, func(a, b schemas.Rule) int { return cmp.Or(cmp.Compare(a.ID, b.ID), cmp.Compare(a.Kind, b.Kind)) })
	return out
}

// rule checks one object, check.in.
type rule struct {
	schemas.Rule
	check func(*check)
}

// about sets the fields that the rule checks.
func (r rule) about(fields ...string) rule {
	r.Fields = fields
	return r
}

// change marks a rule that reads the object before the change, timed a rule that reads the clock.
func (r rule) change() rule {
	r.Class = schemas.ClassChange
	return r
}

func (r rule) timed() rule {
	r.Class = schemas.ClassTime
	return r
}

// check is one run over a landscape, with its current rule and object.
type check struct {
	Options
	*index
	byKind map[string][]rule
	rule   schemas.Rule
	in     *schemas.Input
	found  []schemas.Violation

	// mutations fill in the fields that Shoots omit; fill is the result for filledFor.
	mutations *mutation.Surroundings
	fill      mutation.Result
	filledFor *schemas.Input
	// former is the previous revision of the Shoot formerFor, with formerFilled filled in.
	former       *unstructured.Unstructured
	formerFilled []mutation.Change
	formerFor    *schemas.Input
}

func (c *check) object() map[string]any { return c.in.Content().Object }

// name, namespace and kind identify the current object.
func (c *check) name() string      { return identityOf(c.in).name }
func (c *check) namespace() string { return identityOf(c.in).namespace }
func (c *check) kind() string      { return identityOf(c.in).kind.Kind }

// reportNew is report for a finding that does not count for unchanged objects.
func (c *check) reportNew(field string, typ schemas.ViolationType, format string, args ...any) {
	c.report(field, typ, format, args...)
	c.found[len(c.found)-1].NewOnly = true
}

// report adds a finding about a field of the current object.
func (c *check) report(field string, typ schemas.ViolationType, format string, args ...any) {
	c.reportAbout(c.in, field, typ, format, args...)
}

// reportAbout adds a finding about an object that the current one refers to. Other referring
// objects may add the same finding.
func (c *check) reportAbout(in *schemas.Input, field string, typ schemas.ViolationType, format string, args ...any) {
	id := identityOf(in)
	v := schemas.Violation{
		Severity: c.rule.Severity, Kind: id.kind.Kind, Namespace: id.namespace, Name: id.name,
		Field: field, Type: typ, Rule: c.rule.ID, Message: fmt.Sprintf(format, args...),
	}
	if in.Positions != nil {
		p := in.Positions.Position(field)
		v.File, v.Line, v.Column = p.File, p.Line, p.Column
	}
	c.found = append(c.found, v)
}

// isExternal reports whether an object exists outside the landscape.
func (c *check) isExternal(id identity) bool {
	return slices.ContainsFunc(c.External, func(e External) bool { return e.Matches(id.kind.Kind, id.namespace, id.name) })
}

// hasExternal reports whether landscape.yaml declares external objects of a kind.
func (c *check) hasExternal(kind string) bool {
	return slices.ContainsFunc(c.External, func(e External) bool { return e.Kind == kind })
}

// named returns an object's kind, namespace and name.
func named(in *schemas.Input) string {
	gvk, namespace, own := in.Identity()
	return structure.RulesName(gvk) + " " + path.Join(namespace, own)
}

// place returns the name and position of an object, for messages about another one.
func place(in *schemas.Input) string {
	name := named(in)
	if in.Positions == nil {
		return name
	}
	p := in.Positions.Position("")
	if p.File == "" {
		return name
	}
	return fmt.Sprintf("%s (%s:%d)", name, p.File, p.Line)
}

// identity is the key of an object.
type identity struct {
	kind            schema.GroupKind
	namespace, name string
}

func identityOf(in *schemas.Input) identity {
	gvk, namespace, name := in.Identity()
	return identity{gvk.GroupKind(), namespace, name}
}
