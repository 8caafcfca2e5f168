package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pergola-dev/pergola/landscapes"
	"github.com/pergola-dev/pergola/source"
)

// landscapeFile makes a folder a landscape.
const landscapeFile = "landscape.yaml"

// folders are the landscapes to compare: those that were given, or all there are on either side.
func (d *diffing) folders(args []string) ([]string, error) {
	if !d.all {
		return args, nil
	}
	top := "."
	if len(args) > 0 {
		top = args[0]
	}
	repo, err := source.Open(top)
	if err != nil {
		return nil, err
	}
	if len(args) == 0 {
		top = repo.Root
	}
	inside, err := repo.Rel(top)
	if err != nil {
		return nil, err
	}
	from, err := d.base(repo)
	if err != nil {
		return nil, err
	}
	var found []string
	for _, rev := range []string{from, d.to} {
		var files fs.FS = os.DirFS(repo.Root)
		if rev != "" {
			at, err := repo.At(rev)
			if err != nil {
				return nil, err
			}
			files = at.FS
		}
		more, err := d.landscapesIn(repo, files, inside, rev)
		if err != nil {
			return nil, err
		}
		found = append(found, more...)
	}
	slices.Sort(found)
	found = slices.Compact(found)
	if len(found) == 0 {
		return nil, fmt.Errorf("%s has no landscape, which is a folder with a file %s", top, landscapeFile)
	}
	return found, nil
}

// landscapesIn finds the landscapes of a side, without those that others build on.
func (d *diffing) landscapesIn(repo *source.Repository, files fs.FS, top, rev string) ([]string, error) {
	var folders []string
	err := fs.WalkDir(files, top, func(name string, entry fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist) && name == top:
			return nil
		case err != nil:
			return err
		case entry.IsDir() && name != top && strings.HasPrefix(entry.Name(), "."):
			return fs.SkipDir
		case entry.Type().IsRegular() && entry.Name() == landscapeFile:
			folders = append(folders, path.Dir(name))
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("find the landscapes of %s: %w", shown(rev), err)
	}
	layers := map[string]bool{}
	for _, folder := range folders {
		l, err := d.load(repo, folder, rev)
		if err != nil {
			return nil, err
		}
		for _, layer := range l.Layers {
			if layer != "." {
				layers[path.Join(folder, layer)] = true
			}
		}
	}
	var out []string
	for _, folder := range folders {
		if !layers[folder] {
			out = append(out, written(filepath.Join(repo.Root, filepath.FromSlash(folder))))
		}
	}
	return out, nil
}

// load reads a landscape of the repository; what is wrong with it is said when it is compared.
func (d *diffing) load(repo *source.Repository, folder, rev string) (*landscapes.Landscape, error) {
	dir := written(filepath.Join(repo.Root, filepath.FromSlash(folder)))
	if rev == "" {
		l, _, err := load(d.cmd, dir)
		return l, err
	}
	l, _, _, err := loadAt(d.cmd, repo, dir, rev)
	return l, err
}

// written is a folder as one would write it here.
func written(dir string) string {
	here, err := os.Getwd()
	if err == nil {
		if here, err = filepath.EvalSymlinks(here); err == nil {
			if rel, err := filepath.Rel(here, dir); err == nil && filepath.IsLocal(rel) {
				return rel
			}
		}
	}
	return dir
}
