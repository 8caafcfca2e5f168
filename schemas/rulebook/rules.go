// SPDX-License-Identifier: Apache-2.0

package rulebook

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pergola-dev/pergola/internal/suggest"
	"github.com/pergola-dev/pergola/schemas"
	"github.com/pergola-dev/pergola/schemas/crosscheck"
	"github.com/pergola-dev/pergola/schemas/structure"
)

// Rules returns all rules (for single objects, landscapes and files), sorted by id and kind. A rule
// with different fields per kind has one entry for each kind.
func Rules() ([]schemas.Rule, error) {
	own, err := schemas.Rules()
	if err != nil {
		return nil, err
	}
	all := slices.Concat(own, crosscheck.Rules(), schemas.FileRules())
	slices.SortFunc(all, func(a, b schemas.Rule) int { return cmp.Or(cmp.Compare(a.ID, b.ID), cmp.Compare(a.Kind, b.Kind)) })
	return all, nil
}

// FindRule returns the rule with an id, once per kind. The error for an unknown id suggests a
// similar one.
func FindRule(id string) ([]schemas.Rule, error) {
	all, err := Rules()
	if err != nil {
		return nil, err
	}
	var ids []string
	var found []schemas.Rule
	for _, rule := range all {
		if rule.ID == id {
			found = append(found, rule)
		}
		ids = append(ids, rule.ID)
	}
	if len(found) == 0 {
		if better := suggest.Closest(id, ids); better != "" {
			return nil, fmt.Errorf("there is no rule %q; did you mean %q?", id, better)
		}
		return nil, fmt.Errorf("there is no rule %q; pergola explain --rules lists all of them", id)
	}
	return found, nil
}

// RulesOfKind returns the rules for objects of a kind, with those for every kind.
func RulesOfKind(gvk schema.GroupVersionKind) ([]schemas.Rule, error) {
	all, err := Rules()
	if err != nil {
		return nil, err
	}
	name := structure.RulesName(gvk)
	return slices.DeleteFunc(all, func(rule schemas.Rule) bool {
		group, isGroup := strings.CutSuffix(rule.Kind, ".*")
		return rule.Kind != "*" && rule.Kind != name && !(isGroup && strings.HasPrefix(name, group+"."))
	}), nil
}

// suggestionOrList suggests the similar word, or lists all words.
func suggestionOrList(word string, known []string, introduction string) string {
	if better := suggest.Closest(word, known); better != "" {
		return fmt.Sprintf("; did you mean %q?", better)
	}
	return introduction + strings.Join(known, ", ")
}
