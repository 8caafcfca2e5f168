package across

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/pergola-dev/pergola/schemas"
)

// foretold are warnings of rules about single objects, which cannot see who uses something, with
// the rules here that can.
var foretold = map[string]string{
	"seed/zones-stay":      "seed/zones-in-use",
	"seed/domains-changed": "seed/domains-in-use",
}

// subject is the field of an object that a finding is about.
type subject struct{ kind, namespace, name, field string }

func subjectOf(v schemas.Violation) subject {
	return subject{v.Kind, v.Namespace, v.Name, cmp.Or(v.At, v.Field)}
}

// bySubject gives the findings about each field.
func bySubject(found []schemas.Violation) map[subject][]schemas.Violation {
	at := map[subject][]schemas.Violation{}
	for _, v := range found {
		at[subjectOf(v)] = append(at[subjectOf(v)], v)
	}
	return at
}

// WithoutForetold drops warnings that something may be in use where another finding says by what.
func WithoutForetold(found []schemas.Violation) []schemas.Violation {
	at := bySubject(found)
	return slices.DeleteFunc(slices.Clone(found), func(v schemas.Violation) bool {
		return slices.ContainsFunc(at[subjectOf(v)], func(other schemas.Violation) bool { return isForetold(v, other) })
	})
}

func isForetold(this, by schemas.Violation) bool {
	return foretold[this.Rule] == by.Rule && valueIn(this) == valueIn(by)
}

// OneForEachFault drops what is said of a field a second time: one fault is reported once. Rules
// judge values on their own, as upstream's do, so that a value of a wrong form is also one that no
// profile offers and that no object has as its name.
func OneForEachFault(found []schemas.Violation) []schemas.Violation {
	at := bySubject(found)
	return slices.DeleteFunc(slices.Clone(found), func(v schemas.Violation) bool {
		here := subjectOf(v)
		has := func(field string, typ schemas.Type) bool {
			beside := here
			beside.field = field
			return slices.ContainsFunc(at[beside], func(other schemas.Violation) bool { return other.Type == typ })
		}
		if slices.ContainsFunc(at[here], func(other schemas.Violation) bool { return saysMore(other, v) }) || isAboutMalformed(v, found) {
			return true
		}
		switch v.Type {
		case schemas.TypeNotSupported:
			// a reference without a kind is none to a kind that cannot be referred to
			return has(here.field+".apiVersion", schemas.TypeRequired) || has(here.field+".kind", schemas.TypeRequired)
		case schemas.TypeDuplicate: // an item is there twice, and so is its key
			item := here.field[:max(0, strings.LastIndexByte(here.field, '.'))]
			return isGeneral(v) && has(item, schemas.TypeDuplicate)
		}
		return false
	})
}

// isAboutMalformed tells whether a rule of this package judges what holds a malformed value: it is
// judged again when that is mended.
func isAboutMalformed(v schemas.Violation, found []schemas.Violation) bool {
	here := subjectOf(v)
	return order(v) > 0 && slices.ContainsFunc(found, func(other schemas.Violation) bool {
		there := subjectOf(other)
		rest, below := strings.CutPrefix(there.field, here.field)
		there.field = here.field
		return other.Rule == schemas.RuleStructure && other.Severity == schemas.SeverityError && there == here && below && (strings.HasPrefix(rest, ".") || strings.HasPrefix(rest, "["))
	})
}

// saysMore tells whether, of two findings about one field, the other one makes this one
// superfluous.
func saysMore(other, this schemas.Violation) bool {
	value, otherValue := valueIn(this), valueIn(other)
	same := value != "" && value == otherValue
	isError := other.Severity == schemas.SeverityError
	switch {
	case isForetold(this, other):
		return true
	case isForetold(other, this), other == this, this.Type == schemas.TypeTooLong, this.Type == schemas.TypeTooMany:
		return false
	case (this.Type == schemas.TypeDuplicate) != (other.Type == schemas.TypeDuplicate):
		return false
	case this.Severity != other.Severity:
		return isError && (same || this.Rule == "structure/empty-value")
	case this.Type == schemas.TypeRequired || other.Type == schemas.TypeRequired:
		// where nothing is, it has no form
		return this.Type != schemas.TypeRequired && (value == "" || value == `""` || this.Rule != other.Rule)
	case this.Type == schemas.TypeForbidden && other.Type != schemas.TypeForbidden:
		// that a value is not allowed, or the field
		return strings.HasPrefix(this.Message, value) && same
	case this.Type != schemas.TypeForbidden && other.Type == schemas.TypeForbidden:
		return !(strings.HasPrefix(other.Message, otherValue) && same)
	case this.Rule == "any/amounts": // another rule warns of something else about the same amount
		return false
	case isGeneral(this) != isGeneral(other):
		return isGeneral(this) && other.Type != schemas.TypeTooLong
	case (this.Rule == schemas.RuleStructure) != (other.Rule == schemas.RuleStructure):
		return other.Rule == schemas.RuleStructure
	case !same:
		return false
	case order(this) != order(other):
		return order(other) < order(this)
	case this.Type != other.Type:
		return this.Type == schemas.TypeNotSupported
	}
	return cmp.Or(cmp.Compare(other.Rule, this.Rule), cmp.Compare(other.Message, this.Message)) < 0
}

// isGeneral tells whether a rule is one for all kinds: rules of the kind know better which values
// it may have.
func isGeneral(v schemas.Violation) bool { return strings.HasPrefix(v.Rule, "any/") }

// order is 0 for rules about single objects, which judge the form of a value, and the place in the
// list of those here.
func order(v schemas.Violation) int { return orders()[v.Rule] }

var orders = sync.OnceValue(func() map[string]int {
	out := map[string]int{}
	for i, r := range rules() {
		if out[r.ID] == 0 {
			out[r.ID] = i + 1
		}
	}
	return out
})

var firstValue = regexp.MustCompile(`"[^"]*"|^-?[0-9]+`)

// valueIn is the value that a finding names first, in quotes unless it is a number.
func valueIn(v schemas.Violation) string { return firstValue.FindString(v.Message) }
