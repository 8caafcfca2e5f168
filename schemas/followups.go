package schemas

import (
	"cmp"
	"slices"

	"github.com/pergola-dev/pergola/schemas/structure"
)

// withoutFollowUps drops rule findings that only follow from a schema finding:
//
//   - fields inside a value of a wrong type: a missing field of `spec: 5` helps nobody;
//   - parents, at any height, of an unknown, missing or wrongly typed field. Rules check a list of
//     pools once a misspelt number in it is correct. Fields elsewhere and duplicates are still
//     reported.
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

// holds reports whether the value of one finding contains the value of another one.
func holds(outer, inner finding) bool {
	about := cmp.Or(outer.at, outer.path)
	return outer.typ != TypeDuplicate && about != inner.path && within(about, inner.path)
}

// withoutSaidBetter drops a schema finding about a missing value if a rule reports upstream's
// finding. Aggregated API servers decode into structs and validate a missing value as an empty one.
// Then some fields are Invalid or NotSupported, and a missing object has empty fields.
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
