// SPDX-License-Identifier: Apache-2.0

package crosscheck

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
	"github.com/pergola-dev/pergola/schemas/mutation"
	"github.com/pergola-dev/pergola/schemas/resultcache"
	"github.com/pergola-dev/pergola/schemas/structure"
)

// External names an object outside the landscape, made manually, by another tool or through the
// API.
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

// Options are the options of Check.
type Options struct {
	// Now decides which versions have expired.
	Now time.Time
	// External are the objects that need not be declared.
	External []External
	// Rules returns the findings of the single-object rules. Check applies them to Shoots with the
	// values that the API fills in. Nil skips this step.
	Rules func(schemas.Input) []schemas.Violation
	// IsReferenceOnly reports whether an object serves only as the target of references and is not
	// checked itself; nil checks all objects.
	IsReferenceOnly func(*schemas.Input) bool
	// Cache caches the results of objects between runs; nil disables caching.
	Cache *resultcache.Store
}

// Check returns the sorted findings about a landscape. It ignores structural faults, and tolerates
// expired versions that an object (Input.Old) had before.
func Check(inputs []schemas.Input, opts Options) []schemas.Violation {
	c := &checker{objectIndex: newIndex(inputs), Options: opts, rulesByKind: map[string][]rule{}}
	for _, r := range allRules() {
		c.rulesByKind[r.Kind] = append(c.rulesByKind[r.Kind], r)
	}
	keys, records := c.loadRecords(inputs)
	for _, i := range checkOrder(inputs) {
		in := &inputs[i]
		if opts.IsReferenceOnly != nil && opts.IsReferenceOnly(in) {
			continue
		}
		if in.IsDeclared() && !c.isStillClean(in, records[i].cleanResult) {
			records[i].cleanResult = c.checkObject(in)
			if opts.Cache != nil {
				opts.Cache.Put(keys[i], records[i].encode())
			}
		}
	}
	schemas.SortViolations(c.findings)
	return slices.Compact(c.findings)
}

// checkOrder returns the indices of Gardens, then of other objects, then of Shoots. If two
// objects exclude each other, the later one gets the finding: Shoots change more easily than Seeds,
// and Seeds more easily than Gardens.
func checkOrder(inputs []schemas.Input) []int {
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

// cacheKey returns the digest of all that a record depends on, except the answers to its questions.
func (c *checker) cacheKey(in *schemas.Input) resultcache.Key {
	if c.Cache == nil {
		return resultcache.Key{}
	}
	own := in.Digest()
	w := &resultcache.Writer{}
	w.Text("across")
	w.Key(own)
	for _, e := range c.External {
		for _, text := range []string{e.Kind, e.Namespace, e.Name} {
			w.Text(text)
		}
	}
	return sha256.Sum256(w.Bytes())
}

// loadRecords reads the cached records of the objects in parallel and indexes the Projects. It
// returns the keys, too.
func (c *checker) loadRecords(inputs []schemas.Input) ([]resultcache.Key, []cacheRecord) {
	keys, records := make([]resultcache.Key, len(inputs)), make([]cacheRecord, len(inputs))
	var group panics.Group
	size := max(1, (len(inputs)+runtime.GOMAXPROCS(0)-1)/runtime.GOMAXPROCS(0))
	for start := 0; start < len(inputs); start += size {
		group.Go(func() error {
			for i := start; i < min(start+size, len(inputs)); i++ {
				if in := &inputs[i]; in.IsDeclared() {
					keys[i] = c.cacheKey(in)
					records[i] = c.loadRecord(in, keys[i])
				}
			}
			return nil
		})
	}
	_ = group.Wait() // readers of the cache return no errors
	for i := range inputs {
		c.addProject(&inputs[i], records[i].projectNamespace)
	}
	return keys, records
}

// loadRecord returns the cached record of an object. If there is none, the record has only the
// namespace of a Project.
func (c *checker) loadRecord(in *schemas.Input, key resultcache.Key) cacheRecord {
	if known, ok := c.cachedRecord(key); ok {
		return known
	}
	if c.Cache != nil {
		// A new object without findings has none as an unchanged object either.
		if created, ok := in.AsNew(); ok {
			if known, ok := c.cachedRecord(c.cacheKey(&created)); ok {
				return known
			}
		}
	}
	if identityOf(in).kind == kindProject {
		return cacheRecord{projectNamespace: textAt(in.Content().Object, "spec", "namespace")}
	}
	return cacheRecord{}
}

func (c *checker) cachedRecord(key resultcache.Key) (cacheRecord, bool) {
	data, ok := c.Cache.Get(key)
	if !ok {
		return cacheRecord{}, false
	}
	return decodeRecord(data)
}

// isStillClean reports whether nothing changed that the clean result of an object depends on. It
// also registers the unique values of the object.
func (c *checker) isStillClean(in *schemas.Input, before *cleanResult) bool {
	if before == nil || c.digestQueryResults(before.questions) != before.answersDigest {
		return false
	}
	for _, u := range before.claimedValues {
		if first := c.valueOwners[u]; first != nil && first != in && !u.canBeShared() {
			return false
		}
		if other := c.valueOwners[uniqueValue{conflictingPurposes[u.purpose], u.value}]; other != nil && other != in {
			return false
		}
	}
	for _, u := range before.claimedValues {
		if c.valueOwners[u] == nil {
			c.valueOwners[u] = in
		}
	}
	return true
}

// checkObject runs all rules of an object. It returns notes for the cache if there are no findings.
func (c *checker) checkObject(in *schemas.Input) *cleanResult {
	before := len(c.findings)
	c.currentNotes = &cleanResult{}
	gvk, _, _ := in.Identity()
	for _, r := range c.rulesByKind[structure.RulesName(gvk)] {
		c.currentRule, c.input = r.Rule, in
		r.checkFunc(c)
	}
	if gvk.GroupKind() == kindShoot {
		c.checkCompletedShoot()
	}
	noted := c.currentNotes
	c.currentNotes = nil
	if len(c.findings) > before || c.Cache == nil {
		return nil
	}
	noted.answersDigest = c.digestQueryResults(noted.questions)
	return noted
}

// Rules describes the rules, sorted by id and kind. A rule for several kinds has an entry for each.
func Rules() []schemas.Rule {
	var out []schemas.Rule
	for _, r := range allRules() {
		out = append(out, r.Rule)
	}
	slices.SortFunc(out, func(a, b schemas.Rule) int { return cmp.Or(cmp.Compare(a.ID, b.ID), cmp.Compare(a.Kind, b.Kind)) })
	return out
}

// rule checks one object, check.in.
type rule struct {
	schemas.Rule
	checkFunc func(*checker)
}

// withFields sets the fields that the rule checks.
func (r rule) withFields(fields ...string) rule {
	r.Fields = fields
	return r
}

// asChangeRule marks a rule that reads the object before the change, timed a rule that reads the
// clock.
func (r rule) asChangeRule() rule {
	r.Class = schemas.ClassChange
	return r
}

func (r rule) asTimeRule() rule {
	r.Class = schemas.ClassTime
	return r
}

// checker is one run over a landscape, with its current rule and object.
type checker struct {
	Options
	*objectIndex
	rulesByKind map[string][]rule
	currentRule schemas.Rule
	input       *schemas.Input
	findings    []schemas.Violation

	// mutations fill in the fields that Shoots omit; fillResult is the result for fillInput.
	mutations  *mutation.Mutator
	fillResult mutation.Result
	fillInput  *schemas.Input
	// oldShoot is the previous revision of the Shoot oldShootInput, with oldShootChanges filled in.
	oldShoot        *unstructured.Unstructured
	oldShootChanges []mutation.Change
	oldShootInput   *schemas.Input
}

func (c *checker) object() map[string]any { return c.input.Content().Object }

// name, namespace and kind identify the current object.
func (c *checker) name() string      { return identityOf(c.input).name }
func (c *checker) namespace() string { return identityOf(c.input).namespace }
func (c *checker) kind() string      { return identityOf(c.input).kind.Kind }

// reportNew is report for a finding that does not count for unchanged objects.
func (c *checker) reportNew(field string, typ schemas.ViolationType, format string, args ...any) {
	c.report(field, typ, format, args...)
	c.findings[len(c.findings)-1].NewOnly = true
}

// report adds a finding about a field of the current object.
func (c *checker) report(field string, typ schemas.ViolationType, format string, args ...any) {
	c.reportForObject(c.input, field, typ, format, args...)
}

// reportForObject adds a finding about an object that the current one refers to. Other referring
// objects may add the same finding.
func (c *checker) reportForObject(in *schemas.Input, field string, typ schemas.ViolationType, format string, args ...any) {
	id := identityOf(in)
	v := schemas.Violation{
		Severity: c.currentRule.Severity, Kind: id.kind.Kind, Namespace: id.namespace, Name: id.name,
		Field: field, Type: typ, Rule: c.currentRule.ID, Message: fmt.Sprintf(format, args...),
	}
	if in.Positions != nil {
		p := in.Positions.Position(field)
		v.File, v.Line, v.Column = p.File, p.Line, p.Column
	}
	c.findings = append(c.findings, v)
}

// isExternal reports whether an object exists outside the landscape.
func (c *checker) isExternal(id identity) bool {
	return slices.ContainsFunc(c.External, func(e External) bool { return e.Matches(id.kind.Kind, id.namespace, id.name) })
}

// hasExternal reports whether landscape.yaml declares external objects of a kind.
func (c *checker) hasExternal(kind string) bool {
	return slices.ContainsFunc(c.External, func(e External) bool { return e.Kind == kind })
}

// objectName returns an object's kind, namespace and name.
func objectName(in *schemas.Input) string {
	gvk, namespace, own := in.Identity()
	return structure.RulesName(gvk) + " " + path.Join(namespace, own)
}

// objectPosition returns the name and position of an object, for messages about another one.
func objectPosition(in *schemas.Input) string {
	name := objectName(in)
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
