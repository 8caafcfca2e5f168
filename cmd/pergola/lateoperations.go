package main

import (
	"path/filepath"
	"time"

	"github.com/pergola-dev/pergola/landscapes"
	"github.com/pergola-dev/pergola/schemas"
	"github.com/pergola-dev/pergola/source"
)

// ruleLate is the rule of the findings about operations that come too late.
const ruleLate = "landscape/operation-late"

// lateOperations are the findings about operations that came or changed since the revision that is compared with, and that are never executed:
// their time is over. former is nil where that revision has no landscape in the folder.
func (v *validation) lateOperations(path string, former, l *landscapes.Landscape, now time.Time) ([]schemas.Violation, error) {
	late := l.LateOperations(former, now)
	if former == nil && len(late) > 0 {
		repo, err := source.Open(path)
		if err != nil {
			return nil, err
		}
		was, known, err := comparison{cmd: v.cmd, repo: repo, dir: path, from: v.from}.formerly()
		if err != nil {
			return nil, err
		}
		if known {
			late = l.LateOperations(was.landscape, now)
		}
	}
	var out []schemas.Violation
	for _, o := range late {
		out = append(out, schemas.Violation{
			Severity: schemas.SeverityWarning, File: filepath.Join(l.Dir, o.File), Line: o.NotAfterAt.Line, Column: o.NotAfterAt.Column, Kind: landscapes.KindOperation, Name: o.ID,
			Field: "spec.notAfter", Type: schemas.TypeInvalid, Rule: ruleLate, Message: "has passed: " + o.Operation + " on " + o.Object() +
				" ran out and is never executed; set a later time (under another file name, if this one was in force before), or remove the file",
		})
	}
	return out, nil
}
