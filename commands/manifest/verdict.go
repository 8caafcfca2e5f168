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
	"github.com/pergola-dev/pergola/schemas/across"
)

// Verdict checks files with objects.
type Verdict struct {
	Options landscapes.Options
	// Old is the file with the objects before the change, for the rules of updates and deletions,
	// or "".
	Old string
	// Several reports whether other files are checked, too: an object that is missing in one may be
	// in another one.
	Several bool
	// Report gets the findings that make Old unusable, with a prefix and a function that reads the
	// file.
	Report func(found []schemas.Violation, before string, read func(file string) ([]byte, error)) error
}

// Findings returns the static findings about a file. A file without objects is an error: a broken
// pipe must not pass.
func (v Verdict) Findings(ctx context.Context, name string, data []byte) ([]schemas.Violation, error) {
	declarations, violations, err := landscapes.Parse(ctx, name, data, v.Options)
	if err != nil {
		return nil, err
	}
	if len(declarations)+len(violations) == 0 {
		return []schemas.Violation{{Severity: schemas.SeverityError, File: name, Type: schemas.TypeRequired, Rule: "landscape/file",
			Message: "holds no declaration; write an object with apiVersion, kind and metadata.name"}}, nil
	}
	before, err := v.before(ctx)
	if err != nil {
		return nil, err
	}
	var inputs []schemas.Input
	for i := range declarations {
		d := &declarations[i]
		violations = append(violations, synced.Check(d)...)
		input := schemas.Input{Object: d.Object(), Positions: d}
		if o, ok := before[identity(d)]; ok {
			input.Old = o.Object()
			delete(before, identity(d))
		}
		inputs = append(inputs, input)
	}
	if !v.Several && len(before) > 0 && !sharesKind(declarations, before, inputs) {
		return nil, fmt.Errorf("--old: %s has no object of a kind that %s has: nothing is compared; give the file as it was before the change", v.Old, name)
	}
	for _, gone := range before {
		if v.Several {
			break // it may be in another file
		}
		inputs = append(inputs, schemas.Input{Old: gone.Object(), Positions: gone})
	}
	found, err := schemas.Validate(ctx, inputs, schemas.Options{})
	return append(violations, across.DropDuplicates(landscapes.DescribeForms(found))...), err
}

// before returns the objects before the change, by identity.
func (v Verdict) before(ctx context.Context) (map[string]*landscapes.Declaration, error) {
	if v.Old == "" {
		return nil, nil
	}
	data, err := ReadFile(v.Old)
	if err != nil {
		return nil, fmt.Errorf("--old: %w", err)
	}
	declarations, violations, err := landscapes.Parse(ctx, v.Old, data, v.Options)
	if err != nil {
		return nil, fmt.Errorf("--old: %w", err)
	}
	if schemas.HasErrors(violations) {
		read := func(string) ([]byte, error) { return data, nil }
		if err := v.Report(violations, "--old", read); err != nil {
			return nil, err
		}
		return nil, &revisions.NotValidError{Message: "--old: " + v.Old + " is not valid: there is nothing to compare with", Findings: violations}
	}
	out := map[string]*landscapes.Declaration{}
	for i := range declarations {
		out[identity(&declarations[i])] = &declarations[i]
	}
	return out, nil
}

// sharesKind reports whether an object is unchanged, or another object of its kind is missing: then
// it may be renamed.
func sharesKind(declarations []landscapes.Declaration, before map[string]*landscapes.Declaration, inputs []schemas.Input) bool {
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

func identity(d *landscapes.Declaration) string {
	return d.GroupVersionKind().GroupKind().String() + "/" + d.Namespace() + "/" + d.Name()
}

// Read reads one byte more than the size limit of a manifest; the parser then rejects it.
func Read(from io.Reader) ([]byte, error) {
	return io.ReadAll(io.LimitReader(from, landscapes.MaxFileSize+1))
}

// ReadFile is Read for a file.
func ReadFile(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return Read(file)
}
