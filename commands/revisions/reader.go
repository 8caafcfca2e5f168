// SPDX-License-Identifier: Apache-2.0

package revisions

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/pergola-dev/pergola/landscapes"
	"github.com/pergola-dev/pergola/render"
	"github.com/pergola-dev/pergola/schemas"
	"github.com/pergola-dev/pergola/schemas/resultcache"
	"github.com/pergola-dev/pergola/source"
)

// Reader reads and checks landscapes.
type Reader struct {
	// WithOptions calls read with options: keys and processes for CUE files, which end afterwards.
	WithOptions func(read func(landscapes.Options) error) error
	// Cache returns the cache of validation results for a landscape folder; Keep saves it for the
	// next run.
	Cache     func(dir string) *resultcache.Store
	SaveCache func(dir string)
	// Catalogue is used for rendering and to check settings, overlays and facts.
	Catalogue fs.FS
	// Charts pulls the charts of a landscape's Extensions.
	Charts func(*landscapes.Landscape) render.Setting
	// Report gets the findings that a function does not return. Each begins with the revision, if
	// any; sources reads their files.
	Report func(found []schemas.Violation, revision string, sources func(file string) ([]byte, error)) error
}

// Load reads a landscape from the work tree.
func (r Reader) Load(ctx context.Context, dir string) (l *landscapes.Landscape, violations []schemas.Violation, err error) {
	err = r.WithOptions(func(opts landscapes.Options) error {
		opts.ResultCache = r.Cache(dir)
		l, violations, err = landscapes.Load(ctx, dir, opts)
		return err
	})
	return l, violations, err
}

// LoadAt reads a landscape from a revision. It returns the commit even if there is no landscape.
func (r Reader) LoadAt(ctx context.Context, repo *source.Repository, dir, rev string) (*landscapes.Landscape, []schemas.Violation, string, error) {
	rel, err := repo.RelativePath(dir)
	if err != nil {
		return nil, nil, "", err
	}
	revision, err := repo.At(rev)
	if err != nil {
		return nil, nil, "", err
	}
	var l *landscapes.Landscape
	var violations []schemas.Violation
	err = r.WithOptions(func(opts landscapes.Options) error {
		opts.ResultCache = r.Cache(dir)
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
	return l, r.RequireValid(ctx, l, violations, "")
}

// IsMissing reports whether an error means that the landscape does not exist.
func IsMissing(err error) bool {
	return errors.As(err, new(*landscapes.NoLandscapeError))
}
