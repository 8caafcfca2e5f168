package main

import (
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"

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
		more, err := d.landscapesIn(repo, inside, rev)
		if err != nil {
			return nil, err
		}
		found = append(found, more...)
	}
	slices.Sort(found)
	if found, err = withoutFormer(repo, slices.Compact(found), inside, from, d.to); err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("%s has no landscape, which is a folder with a file %s", top, landscapeFile)
	}
	return found, nil
}

// landscapesIn finds the landscapes of a side, without those that others build on.
func (d *diffing) landscapesIn(repo *source.Repository, top, rev string) ([]string, error) {
	names, err := landscapesOf(repo, top, rev)
	if err != nil {
		return nil, err
	}
	folders := slices.Sorted(maps.Keys(names))
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
