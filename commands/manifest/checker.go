// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/pergola-dev/pergola/commands/revisions"
	"github.com/pergola-dev/pergola/commands/synced"
	"github.com/pergola-dev/pergola/landscapes"
	"github.com/pergola-dev/pergola/schemas"
	"github.com/pergola-dev/pergola/schemas/crosscheck"
)

// Checker checks files with objects.
type Checker struct {
	Options landscapes.Options
	// OldFile is the file with the objects before the change, for the rules of updates and
	// deletions, or "".
	OldFile string
	// HasOtherFiles reports whether other files are checked, too: an object that is missing in one
	// may be in another one.
	HasOtherFiles bool
	// Report gets the findings that make Old unusable, with a prefix and a function that reads the
	// file.
	Report func(found []schemas.Violation, before string, read func(file string) ([]byte, error)) error
}

// Findings returns the static findings about a file. A file without objects is an error: a broken
// pipe must not pass.
func (v Checker) Findings(ctx context.Context, name string, data []byte) ([]schemas.Violation, error) {
	declarations, violations, err := landscapes.Parse(ctx, name, data, v.Options)
	if err != nil {
		return nil, err
	}
	if len(declarations)+len(violations) == 0 {
		return []schemas.Violation{{Severity: schemas.SeverityError, File: name, Type: schemas.TypeRequired, Rule: "landscape/file",
			Message: "holds no declaration; write an object with apiVersion, kind and metadata.name"}}, nil
	}
	before, err := v.readOld(ctx)
	if err != nil {
		return nil, err
	}
	var inputs []schemas.Input
	for i := range declarations {
		d := &declarations[i]
		violations = append(violations, synced.Check(d)...)
		input := schemas.Input{Object: d.Object(), Positions: d}
		if o, ok := before[objectIdentity(d)]; ok {
			input.Old = o.Object()
			delete(before, objectIdentity(d))
		}
		inputs = append(inputs, input)
	}
	if !v.HasOtherFiles && len(before) > 0 && !canBeRenamed(declarations, before, inputs) {
		return nil, fmt.Errorf("--old: %s and %s have no kind in common: nothing is compared; give the file as it was before the change", v.OldFile, name)
	}
	for _, gone := range before {
		if v.HasOtherFiles {
			break // it may be in another file
		}
		inputs = append(inputs, schemas.Input{Old: gone.Object(), Positions: gone})
	}
	found, err := schemas.Validate(ctx, inputs, schemas.Options{})
	return append(violations, crosscheck.DropDuplicates(landscapes.DescribeForms(found))...), err
}

// readOld returns the objects before the change, by identity.
func (v Checker) readOld(ctx context.Context) (map[string]*landscapes.Declaration, error) {
	if v.OldFile == "" {
		return nil, nil
	}
	data, err := ReadFileLimited(v.OldFile)
	if err != nil {
		return nil, fmt.Errorf("--old: %w", err)
	}
	declarations, violations, err := landscapes.Parse(ctx, v.OldFile, data, v.Options)
	if err != nil {
		return nil, fmt.Errorf("--old: %w", err)
	}
	if schemas.HasErrors(violations) {
		read := func(string) ([]byte, error) { return data, nil }
		if err := v.Report(violations, "--old", read); err != nil {
			return nil, err
		}
		return nil, &revisions.NotValidError{Message: "--old: " + v.OldFile + " is not valid: nothing is compared; give a valid file", Findings: violations}
	}
	out := map[string]*landscapes.Declaration{}
	for i := range declarations {
		out[objectIdentity(&declarations[i])] = &declarations[i]
	}
	return out, nil
}

// canBeRenamed reports whether an object is unchanged, or another object of its kind is missing:
// then it may be renamed.
func canBeRenamed(declarations []landscapes.Declaration, before map[string]*landscapes.Declaration, inputs []schemas.Input) bool {
	return slices.ContainsFunc(inputs, func(in schemas.Input) bool { return in.Old != nil }) ||
		slices.ContainsFunc(declarations, func(d landscapes.Declaration) bool {
			for _, gone := range before {
				if gone.GroupVersionKind().GroupKind() == d.GroupVersionKind().GroupKind() {
					return true
				}
			}
			return false
		})
}

func objectIdentity(d *landscapes.Declaration) string {
	return d.GroupVersionKind().GroupKind().String() + "/" + d.Namespace() + "/" + d.Name()
}

// ReadLimited reads one byte more than the size limit of a manifest; the parser then rejects it.
func ReadLimited(from io.Reader) ([]byte, error) {
	return io.ReadAll(io.LimitReader(from, landscapes.MaxFileSize+1))
}

// ReadFileLimited is Read for a file.
func ReadFileLimited(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return ReadLimited(file)
}
