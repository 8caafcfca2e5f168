// SPDX-License-Identifier: Apache-2.0

package revisions

import (
	"fmt"
	"slices"

	"github.com/pergola-dev/pergola/landscapes"
	"github.com/pergola-dev/pergola/schemas"
	"github.com/pergola-dev/pergola/source"
)

// ruleIgnored is the rule of findings about files that git ignores.
const ruleIgnored = "landscape/ignored"

// IgnoredFiles returns findings about files that git ignores: clones lack them, so an operator
// would not read them.
func IgnoredFiles(l *landscapes.Landscape) ([]schemas.Violation, error) {
	var files []string
	for i := range l.Declarations {
		files = append(files, l.Declarations[i].File)
	}
	for _, o := range l.Operations {
		files = append(files, o.File)
	}
	slices.Sort(files)
	found, err := source.Ignored(l.Dir, slices.Compact(files))
	if err != nil {
		return nil, fmt.Errorf("find files that git ignores: %w", err)
	}
	var out []schemas.Violation
	for _, file := range found {
		out = append(out, schemas.Violation{
			Severity: schemas.SeverityWarning, File: file, Line: 1, Column: 1, Type: schemas.TypeForbidden, Rule: ruleIgnored,
			Message: "git ignores the file (.gitignore or .git/info/exclude), so clones and operators lack it; run `git add --force`, fix the ignore rule, or move the file elsewhere",
		})
	}
	empty, err := source.EmptySubmodules(l.Dir)
	if err != nil {
		return nil, fmt.Errorf("find submodules that are not checked out: %w", err)
	}
	for _, folder := range empty {
		out = append(out, schemas.Violation{
			Severity: schemas.SeverityWarning, File: folder, Line: 1, Column: 1, Type: schemas.TypeRequired, Rule: ruleIgnored,
			Message: "the submodule is not checked out, so its content is missing here: run `git submodule update --init`",
		})
	}
	return out, nil
}
