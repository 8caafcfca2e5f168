// SPDX-License-Identifier: Apache-2.0

package why

import (
	"context"
	"errors"
	"path/filepath"
	"sync"

	"github.com/pergola-dev/pergola/source"
	"github.com/pergola-dev/pergola/source/blame"
)

// NewBlamer looks up lines in the repositories of their files, each opened once. A file outside a
// repository has no history.
func NewBlamer() func(context.Context, string, int) (blame.Result, error) {
	type opened struct {
		repo *blame.Repository
		err  error
	}
	var mutex sync.Mutex
	open := map[string]opened{}
	return func(ctx context.Context, file string, line int) (blame.Result, error) {
		mutex.Lock()
		defer mutex.Unlock()
		dir := filepath.Dir(file)
		of, known := open[dir]
		if !known {
			of.repo, of.err = blame.Open(dir, blame.Limits{})
			open[dir] = of
		}
		switch {
		case errors.Is(of.err, source.ErrNoRepository):
			return blame.Result{Reason: "not in a Git repository"}, nil
		case of.err != nil:
			return blame.Result{}, of.err
		}
		return of.repo.BlameLine(ctx, file, line)
	}
}
