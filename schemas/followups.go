// SPDX-License-Identifier: Apache-2.0

package schemas

import (
	"cmp"
	"slices"

	"github.com/pergola-dev/pergola/schemas/structure"
)

// dropFollowUps drops rule findings that only follow from a schema finding:
//
//   - fields inside a value of a wrong type: a missing field of `spec: 5` helps no one;
//   - parents, at any height, of an unknown, missing or wrongly typed field. Rules check a list of
//     pools once a misspelt number in it is correct. Fields elsewhere and duplicates are still
//     reported.
func dropFollowUps(ruled, broken []finding) []finding {
	return slices.DeleteFunc(ruled, func(f finding) bool {
		return slices.ContainsFunc(broken, func(b finding) bool {
			switch b.typ {
			case TypeTypeInvalid:
				return isWithinPath(b.path, f.path) || isParentFinding(f, b)
			case TypeForbidden:
				return isParentFinding(f, b)
			case TypeRequired:
				return isParentFinding(f, b)
			}
			return false
		})
	})
}

// isParentFinding reports whether the value of one finding contains the value of another one.
func isParentFinding(outer, inner finding) bool {
	about := cmp.Or(outer.documentPath, outer.path)
	return outer.typ != TypeDuplicate && about != inner.path && isWithinPath(about, inner.path)
}

// dropMissingReportedByRules drops a schema finding about a missing value if a rule reports
// upstream's finding. Aggregated API servers decode into structs and validate a missing value as an
// empty one. Then some fields are Invalid or NotSupported, and a missing object has empty fields.
func dropMissingReportedByRules(kind *structure.Kind, broken, ruled []finding) []finding {
	if !kind.IsAggregated() {
		return broken
	}
	return slices.DeleteFunc(slices.Clone(broken), func(b finding) bool {
		return b.typ == TypeRequired && slices.ContainsFunc(ruled, func(f finding) bool {
			return f.severity == SeverityError && (f.path == b.path && f.typ != TypeRequired || f.path != b.path && isWithinPath(b.path, f.path))
		})
	})
}
