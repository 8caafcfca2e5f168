package revisions

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/pergola-dev/pergola/landscapes"
	"github.com/pergola-dev/pergola/render"
	"github.com/pergola-dev/pergola/schemas"
	"github.com/pergola-dev/pergola/schemas/kept"
	"github.com/pergola-dev/pergola/source"
)

// Reader reads landscapes, and judges them.
type Reader struct {
	// With calls a function with the options to read with: keys, and processes for CUE files, which
	// end after it.
	With func(read func(landscapes.Options) error) error
	// Kept gives the store for what is found about a landscape folder; Keep writes it for the next
	// run.
	Kept func(dir string) *kept.Store
	Keep func(dir string)
	// Catalogue judges settings, overlays and facts, and renders.
	Catalogue fs.FS
	// Charts pulls what the Extensions of a landscape name.
	Charts func(*landscapes.Landscape) render.Setting
	// Report is told the findings that a function does not return. The revision stands before each,
	// where there is one; sources reads the files they name.
	Report func(found []schemas.Violation, revision string, sources func(file string) ([]byte, error)) error
}

// Load reads a landscape from the work tree.
func (r Reader) Load(ctx context.Context, dir string) (l *landscapes.Landscape, violations []schemas.Violation, err error) {
	err = r.With(func(opts landscapes.Options) error {
		opts.Kept = r.Kept(dir)
		l, violations, err = landscapes.Load(ctx, dir, opts)
		return err
	})
	return l, violations, err
}

// LoadAt reads a landscape as it was in a revision. Where the revision has no landscape there, the
// commit is given nevertheless.
func (r Reader) LoadAt(ctx context.Context, repo *source.Repository, dir, rev string) (*landscapes.Landscape, []schemas.Violation, string, error) {
	rel, err := repo.Rel(dir)
	if err != nil {
		return nil, nil, "", err
	}
	revision, err := repo.At(rev)
	if err != nil {
		return nil, nil, "", err
	}
	var l *landscapes.Landscape
	var violations []schemas.Violation
	err = r.With(func(opts landscapes.Options) error {
		opts.Kept = r.Kept(dir)
		l, violations, err = landscapes.LoadFS(ctx, revision.FS, rel, opts)
		return err
	})
	if err != nil {
		return nil, nil, revision.Commit, fmt.Errorf("revision %s: %w", rev, err)
	}
	l.Dir = dir
	return l, violations, revision.Commit, nil
}

// LoadValid is Load followed by Valid.
func (r Reader) LoadValid(ctx context.Context, dir string) (*landscapes.Landscape, error) {
	l, violations, err := r.Load(ctx, dir)
	if err != nil {
		return nil, err
	}
	return l, r.Valid(ctx, l, violations, "")
}

// IsMissing reports whether an error says that there is no landscape.
func IsMissing(err error) bool {
	return errors.As(err, new(*landscapes.NoLandscapeError))
}
