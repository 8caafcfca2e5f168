// SPDX-License-Identifier: Apache-2.0

package revisions

import (
	"context"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pergola-dev/pergola/commands"
	"github.com/pergola-dev/pergola/commands/preview"
	"github.com/pergola-dev/pergola/components"
	"github.com/pergola-dev/pergola/internal/panics"
	"github.com/pergola-dev/pergola/landscapes"
	"github.com/pergola-dev/pergola/render"
	"github.com/pergola-dev/pergola/schemas"
)

// NotValidError ends a command because of findings that are already reported.
type NotValidError struct {
	Message  string
	Findings []schemas.Violation
}

func (e *NotValidError) Error() string { return e.Message }

// Findings returns all sorted violations of a landscape, with files relative to the working
// directory.
func (r Reader) Findings(ctx context.Context, l *landscapes.Landscape, violations []schemas.Violation) ([]schemas.Violation, error) {
	return r.FindingsSince(ctx, l, nil, violations)
}

// FindingsSince also returns those about the change from before, which may be nil.
func (r Reader) FindingsSince(ctx context.Context, l, before *landscapes.Landscape, violations []schemas.Violation) ([]schemas.Violation, error) {
	var group panics.Group
	var config []schemas.Violation
	group.Go(func() error { config = r.settingFindings(l); return nil })
	found, err := l.ValidateChange(ctx, before, schemas.Options{})
	_ = group.Wait() // it returns no error
	if err != nil {
		return nil, err
	}
	if before != nil && !l.Incomplete {
		found = preview.ReplaceRemovalFindings(found, l, before)
	}
	r.SaveCache(l.Dir)
	all := slices.Concat(violations, found, withoutRepeats(config, found), missingCatalogueVersion(l))
	for i := range all {
		all[i].File = filepath.Join(l.Dir, all[i].File)
		all[i].Message = relativePaths(l, all[i].Message)
	}
	schemas.SortViolations(all)
	return all, nil
}

// fileLinePattern matches a file with a line in a message.
var fileLinePattern = regexp.MustCompile(`[^\s()"]+:\d+`)

// relativePaths rewrites the files in a message relative to the working directory instead of the
// landscape.
func relativePaths(l *landscapes.Landscape, message string) string {
	return fileLinePattern.ReplaceAllStringFunc(message, func(found string) string {
		file, line, _ := strings.Cut(found, ":")
		if !slices.ContainsFunc(l.Declarations, func(d landscapes.Declaration) bool { return d.File == file }) {
			return found
		}
		return filepath.Join(l.Dir, file) + ":" + line
	})
}

// missingCatalogueVersion warns about a landscape without a catalogue version.
func missingCatalogueVersion(l *landscapes.Landscape) []schemas.Violation {
	if l.Config.Spec.Catalogue != nil || l.ConfigDeclaration == nil {
		return nil
	}
	if written, ok, _ := unstructured.NestedFieldNoCopy(l.ConfigDeclaration.Object().Object, "spec", "catalogue"); ok && written != nil {
		return nil // another finding reports its fault
	}
	at := l.ConfigDeclaration.Position("spec.catalogue")
	return []schemas.Violation{{
		Severity: schemas.SeverityWarning, File: at.File, Line: at.Line, Column: at.Column,
		Kind: "Landscape", Name: l.Config.Name, Field: "spec.catalogue", Type: schemas.TypeRequired, Rule: "landscape/catalogue",
		Message: fmt.Sprintf("names no version of the catalogue, so the next version of this program changes the clusters without a commit; write catalogue: {version: %s}", components.Version),
	}}
}

// RequireValid reports all findings and fails if there is an error. Each finding begins with the
// revision, if any.
func (r Reader) RequireValid(ctx context.Context, l *landscapes.Landscape, violations []schemas.Violation, revision string) error {
	all, err := r.Findings(ctx, l, violations)
	if err != nil {
		return err
	}
	return r.RequireNoErrors(l, all, revision)
}

// RequireNoErrors is Valid with known findings.
func (r Reader) RequireNoErrors(l *landscapes.Landscape, all []schemas.Violation, revision string) error {
	if err := r.Report(all, revision, SourceReader(l)); err != nil {
		return err
	}
	if schemas.HasErrors(all) {
		return commands.Finding{Err: &NotValidError{"the landscape is not valid: nothing was done", all}}
	}
	return nil
}

// SourceReader reads the files of a landscape in its revision, by their names in findings.
func SourceReader(l *landscapes.Landscape) func(string) ([]byte, error) {
	return func(file string) ([]byte, error) {
		rel, err := filepath.Rel(l.Dir, file)
		if err != nil {
			return nil, err
		}
		name := path.Join(l.Path, filepath.ToSlash(rel))
		if info, err := fs.Stat(l.FS, name); err != nil || !info.Mode().IsRegular() || info.Size() > landscapes.MaxFileSize {
			return nil, fmt.Errorf("%s cannot be shown", file)
		}
		return fs.ReadFile(l.FS, name)
	}
}

// settingFindings returns findings about landscape.yaml, overlays and facts that do not match the
// catalogue.
func (r Reader) settingFindings(l *landscapes.Landscape) []schemas.Violation {
	if l.ConfigDeclaration == nil {
		return nil
	}
	return render.CheckLandscape(r.Catalogue, l, render.WithTime(time.Now()), render.WithPassedRules())
}

// withoutRepeats drops rendering errors about fields that already violate a rule.
func withoutRepeats(rendering, rules []schemas.Violation) []schemas.Violation {
	type place struct{ kind, namespace, name, field string }
	known := map[place]bool{}
	for _, v := range rules {
		known[place{v.Kind, v.Namespace, v.Name, v.Field}] = v.Severity == schemas.SeverityError
	}
	return slices.DeleteFunc(rendering, func(v schemas.Violation) bool { return known[place{v.Kind, v.Namespace, v.Name, v.Field}] })
}
