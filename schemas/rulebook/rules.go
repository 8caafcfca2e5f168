package rulebook

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pergola-dev/pergola/internal/suggest"
	"github.com/pergola-dev/pergola/schemas"
	"github.com/pergola-dev/pergola/schemas/across"
	"github.com/pergola-dev/pergola/schemas/structure"
)

// Rules lists all rules, those of single objects, those across a landscape and those of its files,
// by id and kind. A rule about several kinds that has different fields in each is there for each of
// them.
func Rules() ([]schemas.Rule, error) {
	own, err := schemas.Rules()
	if err != nil {
		return nil, err
	}
	all := slices.Concat(own, across.Rules(), schemas.FileRules())
	slices.SortFunc(all, func(a, b schemas.Rule) int { return cmp.Or(cmp.Compare(a.ID, b.ID), cmp.Compare(a.Kind, b.Kind)) })
	return all, nil
}

// Find gives the rule with an id, for each kind that it is about, and an error with a hint for an
// id that there is not.
func Find(id string) ([]schemas.Rule, error) {
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
		if better := suggest.Word(id, ids); better != "" {
			return nil, fmt.Errorf("there is no rule %q; did you mean %q?", id, better)
		}
		return nil, fmt.Errorf("there is no rule %q; pergola explain --rules lists all of them", id)
	}
	return found, nil
}

// OfKind lists the rules that objects of a kind have to hold, with those of every kind.
func OfKind(gvk schema.GroupVersionKind) ([]schemas.Rule, error) {
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

// meantOr is a hint at the word that was probably meant, or else all words.
func meantOr(word string, known []string, introduction string) string {
	if better := suggest.Word(word, known); better != "" {
		return fmt.Sprintf("; did you mean %q?", better)
	}
	return introduction + strings.Join(known, ", ")
}
