// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"path/filepath"
	"time"

	"github.com/pergola-dev/pergola/landscapes"
	"github.com/pergola-dev/pergola/schemas"
)

// RuleLateOperation is the rule of findings about late operations.
const RuleLateOperation = "landscape/operation-late"

// LateOperations returns findings about new or changed operations whose time is over, so they are
// never executed.
func LateOperations(former, l *landscapes.Landscape, now time.Time) []schemas.Violation {
	var out []schemas.Violation
	for _, o := range l.ExpiredOperations(former, now) {
		out = append(out, schemas.Violation{
			Severity: schemas.SeverityWarning, File: filepath.Join(l.Dir, o.File), Line: o.NotAfterPosition.Line, Column: o.NotAfterPosition.Column, Kind: landscapes.KindOperation, Name: o.ID,
			Field: "spec.notAfter", Type: schemas.TypeInvalid, Rule: RuleLateOperation, Message: "has passed: " + o.Operation + " on " + o.Object() +
				" has expired and is never executed; set a later time (with another file name, if this one was applied before), or remove the file",
		})
	}
	return out
}
