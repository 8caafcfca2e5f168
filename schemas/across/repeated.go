package across

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/pergola-dev/pergola/schemas"
)

// foretold maps warnings of single-object rules, which cannot see the users of a value, to the
// rules of this package that see them.
var foretold = map[string]string{
	"seed/zones-stay":      "seed/zones-in-use",
	"seed/domains-changed": "seed/domains-in-use",
}

// subject is the field of an object that a finding is about.
type subject struct{ kind, namespace, name, field string }

func subjectOf(v schemas.Violation) subject {
	return subject{v.Kind, v.Namespace, v.Name, cmp.Or(v.ActualField, v.Field)}
}

// bySubject groups findings by field.
func bySubject(found []schemas.Violation) map[subject][]schemas.Violation {
	at := map[subject][]schemas.Violation{}
	for _, v := range found {
		at[subjectOf(v)] = append(at[subjectOf(v)], v)
	}
	return at
}

// WithoutForetold drops warnings about possible users if another finding names the users.
func WithoutForetold(found []schemas.Violation) []schemas.Violation {
	at := bySubject(found)
	return slices.DeleteFunc(slices.Clone(found), func(v schemas.Violation) bool {
		return slices.ContainsFunc(at[subjectOf(v)], func(other schemas.Violation) bool { return isForetold(v, other) })
	})
}

func isForetold(this, by schemas.Violation) bool {
	return foretold[this.Rule] == by.Rule && valueIn(this) == valueIn(by)
}

// OneForEachFault drops repeated findings about a field. Rules check values separately, like
// upstream, so a malformed value also fails lookups in profiles and references.
func OneForEachFault(found []schemas.Violation) []schemas.Violation {
	at := bySubject(found)
	return slices.DeleteFunc(slices.Clone(found), func(v schemas.Violation) bool {
		here := subjectOf(v)
		has := func(field string, typ schemas.ViolationType) bool {
			beside := here
			beside.field = field
			return slices.ContainsFunc(at[beside], func(other schemas.Violation) bool { return other.Type == typ })
		}
		if slices.ContainsFunc(at[here], func(other schemas.Violation) bool { return saysMore(other, v) }) || isAboutMalformed(v, found) {
			return true
		}
		switch v.Type {
		case schemas.TypeNotSupported:
			// without a kind, the reference does not name an unsupported kind
			return has(here.field+".apiVersion", schemas.TypeRequired) || has(here.field+".kind", schemas.TypeRequired)
		case schemas.TypeDuplicate: // a repeated item repeats its key, too
			item := here.field[:max(0, strings.LastIndexByte(here.field, '.'))]
			return isGeneral(v) && has(item, schemas.TypeDuplicate)
		}
		return false
	})
}

// isAboutMalformed reports whether a rule of this package checked a parent of a malformed value.
// The check repeats after the correction.
func isAboutMalformed(v schemas.Violation, found []schemas.Violation) bool {
	here := subjectOf(v)
	return order(v) > 0 && slices.ContainsFunc(found, func(other schemas.Violation) bool {
		there := subjectOf(other)
		rest, below := strings.CutPrefix(there.field, here.field)
		there.field = here.field
		return other.Rule == schemas.RuleStructure && other.Severity == schemas.SeverityError && there == here && below && (strings.HasPrefix(rest, ".") || strings.HasPrefix(rest, "["))
	})
}

// saysMore reports whether the other finding about the same field makes this one redundant.
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
		// a missing value has no form
		return this.Type != schemas.TypeRequired && (value == "" || value == `""` || this.Rule != other.Rule)
	case this.Type == schemas.TypeForbidden && other.Type != schemas.TypeForbidden:
		// forbidden value or forbidden field
		return strings.HasPrefix(this.Message, value) && same
	case this.Type != schemas.TypeForbidden && other.Type == schemas.TypeForbidden:
		return !(strings.HasPrefix(other.Message, otherValue) && same)
	case this.Rule == "any/amounts": // another rule may warn of a different problem with the amount
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

// isGeneral reports whether a rule is for all kinds; rules of one kind know its values better.
func isGeneral(v schemas.Violation) bool { return strings.HasPrefix(v.Rule, "any/") }

// order returns 0 for single-object rules, else the position in the list of this package's rules.
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

// valueIn returns the first value in a message: quoted, or a number at its start.
func valueIn(v schemas.Violation) string { return firstValue.FindString(v.Message) }
