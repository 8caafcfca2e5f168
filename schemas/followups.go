package schemas

import (
	"cmp"
	"slices"

	"github.com/pergola-dev/pergola/schemas/structure"
)

// withoutFollowUps drops what rules say only because they could not see the value that was written,
// which the schema says already:
//
//   - fields inside a value of a wrong type: that a field of `spec: 5` is missing helps nobody;
//   - what holds an unknown, missing or wrongly typed field, at any height: a list of pools in
//     which a number is misspelt is looked at again when the number is there. Fields beside and
//     elsewhere are judged in the same run, and so is what is there twice.
func withoutFollowUps(ruled, broken []finding) []finding {
	return slices.DeleteFunc(ruled, func(f finding) bool {
		return slices.ContainsFunc(broken, func(b finding) bool {
			switch b.typ {
			case TypeTypeInvalid:
				return within(b.path, f.path) || holds(f, b)
			case TypeForbidden:
				return holds(f, b)
			case TypeRequired:
				return holds(f, b)
			}
			return false
		})
	})
}

// holds tells whether a finding is about something that holds what another one is about.
func holds(outer, inner finding) bool {
	about := cmp.Or(outer.at, outer.path)
	return outer.typ != TypeDuplicate && about != inner.path && within(about, inner.path)
}

// withoutSaidBetter drops the findings of the schema that a value is missing where a rule says what
// upstream says about it: its API server decodes into structs, so that to its validation a missing
// value is an empty one, which is Invalid or NotSupported in some fields, and a missing object one
// whose fields are empty.
func withoutSaidBetter(kind *structure.Kind, broken, ruled []finding) []finding {
	if !kind.Aggregated() {
		return broken
	}
	return slices.DeleteFunc(slices.Clone(broken), func(b finding) bool {
		return b.typ == TypeRequired && slices.ContainsFunc(ruled, func(f finding) bool {
			return f.severity == SeverityError && (f.path == b.path && f.typ != TypeRequired || f.path != b.path && within(b.path, f.path))
		})
	})
}
