// SPDX-License-Identifier: Apache-2.0

package crosscheck

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/pergola-dev/pergola/schemas"
)

// supersededRules maps warnings of single-object rules, which cannot see the users of a value, to
// the rules of this package that see them.
var supersededRules = map[string]string{
	"seed/zones-stay":      "seed/zones-in-use",
	"seed/domains-changed": "seed/domains-in-use",
}

// findingSubject is the field of an object that a finding is about.
type findingSubject struct{ kind, namespace, name, field string }

func subjectOf(v schemas.Violation) findingSubject {
	return findingSubject{v.Kind, v.Namespace, v.Name, cmp.Or(v.ActualField, v.Field)}
}

// groupBySubject groups findings by field.
func groupBySubject(found []schemas.Violation) map[findingSubject][]schemas.Violation {
	at := map[findingSubject][]schemas.Violation{}
	for _, v := range found {
		at[subjectOf(v)] = append(at[subjectOf(v)], v)
	}
	return at
}

// DropSuperseded drops warnings about possible users if another finding names the users.
func DropSuperseded(found []schemas.Violation) []schemas.Violation {
	at := groupBySubject(found)
	return slices.DeleteFunc(slices.Clone(found), func(v schemas.Violation) bool {
		return slices.ContainsFunc(at[subjectOf(v)], func(other schemas.Violation) bool { return isSuperseded(v, other) })
	})
}

func isSuperseded(this, by schemas.Violation) bool {
	return supersededRules[this.Rule] == by.Rule && findingValue(this) == findingValue(by)
}

// DropDuplicates drops repeated findings about a field. Rules check values separately, like
// upstream, so a malformed value also fails lookups in profiles and references.
func DropDuplicates(found []schemas.Violation) []schemas.Violation {
	at := groupBySubject(found)
	return slices.DeleteFunc(slices.Clone(found), func(v schemas.Violation) bool {
		here := subjectOf(v)
		has := func(field string, typ schemas.ViolationType) bool {
			beside := here
			beside.field = field
			return slices.ContainsFunc(at[beside], func(other schemas.Violation) bool { return other.Type == typ })
		}
		if slices.ContainsFunc(at[here], func(other schemas.Violation) bool { return isMoreSpecific(other, v) }) || isMalformedValueFinding(v, found) {
			return true
		}
		switch v.Type {
		case schemas.TypeNotSupported:
			// without a kind, the reference does not name an unsupported kind
			return has(here.field+".apiVersion", schemas.TypeRequired) || has(here.field+".kind", schemas.TypeRequired)
		case schemas.TypeDuplicate: // a repeated item repeats its key, too
			item := here.field[:max(0, strings.LastIndexByte(here.field, '.'))]
			return isForAllKinds(v) && has(item, schemas.TypeDuplicate)
		}
		return false
	})
}

// isMalformedValueFinding reports whether a rule of this package checked a parent of a malformed
// value. The check repeats after the correction.
func isMalformedValueFinding(v schemas.Violation, found []schemas.Violation) bool {
	here := subjectOf(v)
	return ruleRank(v) > 0 && slices.ContainsFunc(found, func(other schemas.Violation) bool {
		there := subjectOf(other)
		rest, below := strings.CutPrefix(there.field, here.field)
		there.field = here.field
		return other.Rule == schemas.RuleStructure && other.Severity == schemas.SeverityError && there == here && below && (strings.HasPrefix(rest, ".") || strings.HasPrefix(rest, "["))
	})
}

// isMoreSpecific reports whether the other finding about the same field makes this one redundant.
func isMoreSpecific(other, this schemas.Violation) bool {
	value, otherValue := findingValue(this), findingValue(other)
	same := value != "" && value == otherValue
	isError := other.Severity == schemas.SeverityError
	switch {
	case isSuperseded(this, other):
		return true
	case isSuperseded(other, this), other == this, this.Type == schemas.TypeTooLong, this.Type == schemas.TypeTooMany:
		return false
	case (this.Type == schemas.TypeDuplicate) != (other.Type == schemas.TypeDuplicate):
		return false
	case this.Severity != other.Severity:
		return isError && (same || this.Rule == "structure/empty-value")
	case this.Type == schemas.TypeRequired || other.Type == schemas.TypeRequired:
		// a missing value has no form
		return this.Type != schemas.TypeRequired && (value == "" || value == `""` || this.Rule != other.Rule)
	case this.Type == schemas.TypeForbidden && other.Type != schemas.TypeForbidden:
		// forbidden value or forbidden field
		return strings.HasPrefix(this.Message, value) && same
	case this.Type != schemas.TypeForbidden && other.Type == schemas.TypeForbidden:
		return !(strings.HasPrefix(other.Message, otherValue) && same)
	case this.Rule == "any/amounts": // another rule may warn of a different problem with the amount
		return false
	case isForAllKinds(this) != isForAllKinds(other):
		return isForAllKinds(this) && other.Type != schemas.TypeTooLong
	case (this.Rule == schemas.RuleStructure) != (other.Rule == schemas.RuleStructure):
		return other.Rule == schemas.RuleStructure
	case !same:
		return false
	case ruleRank(this) != ruleRank(other):
		return ruleRank(other) < ruleRank(this)
	case this.Type != other.Type:
		return this.Type == schemas.TypeNotSupported
	}
	return cmp.Or(cmp.Compare(other.Rule, this.Rule), cmp.Compare(other.Message, this.Message)) < 0
}

// isForAllKinds reports whether a rule is for all kinds; rules of one kind know its values better.
func isForAllKinds(v schemas.Violation) bool { return strings.HasPrefix(v.Rule, "any/") }

// ruleRank returns 0 for single-object rules, else the position in the list of this package's
// rules.
func ruleRank(v schemas.Violation) int { return ruleRanks()[v.Rule] }

var ruleRanks = sync.OnceValue(func() map[string]int {
	out := map[string]int{}
	for i, r := range allRules() {
		if out[r.ID] == 0 {
			out[r.ID] = i + 1
		}
	}
	return out
})

var firstValuePattern = regexp.MustCompile(`"[^"]*"|^-?[0-9]+`)

// findingValue returns the first value in a message: quoted, or a number at its start.
func findingValue(v schemas.Violation) string { return firstValuePattern.FindString(v.Message) }
