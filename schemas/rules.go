// SPDX-License-Identifier: Apache-2.0

package schemas

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/cuecontext"

	"github.com/pergola-dev/pergola/schemas/structure"
)

// Rule describes a rule for people.
type Rule struct {
	// ID is KIND/NAME in lower case, "any/NAME" for rules of every kind.
	ID string `json:"id"`
	// Kind is the kind of object that the rule is about (as structure.RulesName writes it), "*" for
	// every kind, "extensions.*" for the kinds of the group extensions.gardener.cloud.
	Kind   string `json:"kind"`
	Title  string `json:"title"`
	Doc    string `json:"doc"`
	Source string `json:"source"`
	// Fields are the fields that the rule is about: each finding is at or below one of them. They
	// have no indices, such as spec.provider.workers.name; "" is the whole object.
	Fields []string `json:"fields"`
	// Language is the origin of the rule: "cue" (schemas/rules), "go" (a listed exception) or
	// "base" (generated).
	Language string `json:"in"`
	// File is the file of the rule, relative to the root of the repository; it is "" for a
	// generated rule.
	File string `json:"file,omitempty"`
	// Severity is the severity of its violations.
	Severity Severity `json:"severity"`
	// Scope is "landscape" for rules that apply only inside a landscape, otherwise "object".
	Scope string `json:"scope"`
	// RuleClass is the input of the verdict besides the declarations.
	Class RuleClass `json:"class"`
}

// RuleClass is the class of a rule: the input of its verdict besides the declarations.
type RuleClass string

const (
	// ClassStatic is a rule whose verdict depends on the declarations alone.
	ClassStatic RuleClass = "static"
	// ClassChange is a rule that reads the object before the change, or whether there was one.
	ClassChange RuleClass = "change"
	// ClassTime is a rule that reads the clock. The same declarations may satisfy it on one day and
	// break it on another.
	ClassTime RuleClass = "time"
)

const (
	scopeObject       = "object"
	scopeLandscape    = "landscape"
	kindAllExtensions = "extensions.*"
)

// Rules lists all rules by id.
func Rules() ([]Rule, error) {
	s, err := embeddedSources()
	if err != nil {
		return nil, err
	}
	return s.listRules()
}

func (s *sources) listRules() ([]Rule, error) {
	byID := map[string]Rule{}
	for _, rule := range unlistedRules() {
		byID[rule.ID] = rule
	}
	for _, rule := range cachedGoRules() {
		byID[rule.ID] = rule.Rule
	}
	for id, rule := range byID {
		rule.Class = cmp.Or(rule.Class, ClassStatic)
		byID[id] = rule
	}
	inCUE, err := s.ruleMeta()
	if err != nil {
		return nil, err
	}
	maps.Copy(byID, inCUE)
	return slices.SortedFunc(maps.Values(byID), func(a, b Rule) int { return cmp.Compare(a.ID, b.ID) }), nil
}

// readRuleMeta compiles all rules with their constraints, so that a rule without a title, or of a
// wrong form, is an error.
func (s *sources) readRuleMeta() (map[string]Rule, error) {
	byID := map[string]Rule{}
	ctx := cuecontext.New()
	for _, gvk := range s.kinds.gvks {
		value, err := s.compileRules(ctx, gvk)
		if err != nil {
			return nil, err
		}
		units, err := s.unitsOf(gvk)
		if err != nil {
			return nil, err
		}
		classes := units.classes()
		fields, err := value.LookupPath(cue.ParsePath("rules")).Fields()
		if err != nil {
			return nil, fmt.Errorf("listing the rules of %s: %w", gvk.Kind, s.explainError(err))
		}
		for fields.Next() {
			rule, err := s.describeRule(fields.Selector().Unquoted(), structure.RulesName(gvk), fields.Value())
			if err != nil {
				return nil, err
			}
			rule.Class = classes[rule.ID]
			byID[rule.ID] = rule
		}
	}
	return byID, nil
}

func (s *sources) describeRule(id, kind string, value cue.Value) (Rule, error) {
	rule := Rule{ID: id, Kind: kind, Language: "cue"}
	rule.File, _, _ = strings.Cut(s.rulePosition(id), ":")
	switch folder, _, _ := strings.Cut(id, "/"); folder {
	case "any":
		rule.Kind = "*"
	case folderExtensions:
		rule.Kind = kindAllExtensions
	}
	var severity string
	for field, target := range map[string]*string{
		"title": &rule.Title, "doc": &rule.Doc, "source": &rule.Source, "severity": &severity, "scope": &rule.Scope,
	} {
		found, err := stringField(value, field)
		if err != nil {
			return Rule{}, fmt.Errorf("reading the rule %s: %w", id, s.explainError(err))
		}
		*target = found
	}
	rule.Severity = Severity(severity)
	if err := value.LookupPath(fieldsPath).Decode(&rule.Fields); err != nil {
		return Rule{}, fmt.Errorf("reading the fields of the rule %s: %w", id, s.explainError(err))
	}
	return rule, nil
}

// IsForField reports whether the rule is about a field: the field itself, a field inside it or, if
// wider, a parent of it.
func (r Rule) IsForField(field string) (concerns, wider bool) {
	for _, own := range r.Fields {
		switch {
		case isWithinPath(field, own):
			return true, false
		case isWithinPath(own, field):
			wider = true
		}
	}
	return wider, wider
}
