package main

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/pergola-dev/pergola/source"
)

// A landscape is the one of its name, in whatever folder: so a folder that was renamed is no new landscape.

// landscapesOf gives the names of the landscapes of a revision, or of the work tree, by their folders below another one.
func landscapesOf(repo *source.Repository, top, rev string) (map[string]string, error) {
	var files fs.FS = os.DirFS(repo.Root)
	if rev != "" {
		at, err := repo.At(rev)
		if err != nil {
			return nil, err
		}
		files = at.FS
	}
	names := map[string]string{}
	err := fs.WalkDir(files, top, func(name string, entry fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist) && name == top:
			return nil
		case err != nil:
			return err
		case entry.IsDir() && name != top && strings.HasPrefix(entry.Name(), "."):
			return fs.SkipDir
		case entry.Type().IsRegular() && entry.Name() == landscapeFile:
			names[path.Dir(name)] = nameInFile(files, name)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("find the landscapes of %s: %w", shown(rev), err)
	}
	return names, nil
}

// nameInFile is the name that a landscape.yaml gives, empty where it cannot be read: what is wrong with it is said when it is loaded.
func nameInFile(files fs.FS, name string) string {
	var config struct {
		Metadata struct {
			Name string `json:"name"`
		} `json:"metadata"`
	}
	if data, err := fs.ReadFile(files, name); err != nil || yaml.Unmarshal(data, &config) != nil {
		return ""
	}
	return config.Metadata.Name
}

// renamed gives the folder that each landscape had whose folder is new, by the new one. One that is in both states was copied, and of two
// of one name nobody can tell which it is.
func renamed(before, after map[string]string) map[string]string {
	gone, come := map[string][]string{}, map[string][]string{}
	for folder, name := range before {
		if _, stays := after[folder]; !stays && name != "" {
			gone[name] = append(gone[name], folder)
		}
	}
	for folder, name := range after {
		if _, was := before[folder]; !was {
			come[name] = append(come[name], folder)
		}
	}
	out := map[string]string{}
	for name, folders := range come {
		if len(folders) == 1 && len(gone[name]) == 1 {
			out[folders[0]] = gone[name][0]
		}
	}
	return out
}

// renames are the folders that landscapes had before the change, by those that they have after it.
func (c comparison) renames() (map[string]string, error) {
	before, err := landscapesOf(c.repo, ".", c.from)
	if err != nil {
		return nil, err
	}
	after, err := landscapesOf(c.repo, ".", c.to)
	return renamed(before, after), err
}

// formerly is the landscape of a folder that the revision to compare from does not have, where it was in another folder then. ok says
// whether it was.
func (c comparison) formerly() (r revision, ok bool, err error) {
	all, err := c.renames()
	if err != nil {
		return r, false, err
	}
	folder, err := c.repo.Rel(c.dir)
	if err != nil {
		return r, false, err
	}
	former, ok := all[folder]
	if !ok {
		return r, false, nil
	}
	l, violations, commit, err := loadAt(c.cmd, c.repo, filepath.Join(c.repo.Root, filepath.FromSlash(former)), c.from)
	if err != nil {
		return r, false, err
	}
	note := fmt.Sprintf("revision %s has this landscape in folder %s: it is compared with that. An operator that syncs it stops until its Landscape names the new folder (spec.source.path)", c.from, former)
	return revision{landscape: l, violations: violations, name: short(commit), as: c.from, notes: []string{note}}, true, nil
}

// afterwards says where a landscape is whose folder is gone; empty if it is nowhere.
func (c comparison) afterwards() (string, error) {
	all, err := c.renames()
	if err != nil {
		return "", err
	}
	folder, err := c.repo.Rel(c.dir)
	for now, former := range all {
		if err == nil && former == folder {
			return fmt.Sprintf("%s has this landscape in folder %s: compare that one", shown(c.to), now), nil
		}
	}
	return "", err
}

// withoutFormer takes out of folders those whose landscape has another folder after the change.
func withoutFormer(repo *source.Repository, folders []string, top, from, to string) ([]string, error) {
	before, err := landscapesOf(repo, top, from)
	if err != nil {
		return nil, err
	}
	after, err := landscapesOf(repo, top, to)
	if err != nil {
		return nil, err
	}
	former := slices.Collect(maps.Values(renamed(before, after)))
	return slices.DeleteFunc(folders, func(folder string) bool {
		rel, err := repo.Rel(folder)
		return err == nil && slices.Contains(former, rel)
	}), nil
}

// names are those by which a report tells landscapes apart: their own, with the folder where two have the same one, or none can be read.
func (d *diffing) names(dirs []string) []string {
	names, count := make([]string, len(dirs)), map[string]int{}
	for i, dir := range dirs {
		names[i] = d.nameOf(dir)
		count[names[i]]++
	}
	for i, dir := range dirs {
		switch {
		case names[i] == "":
			names[i] = dir
		case count[names[i]] > 1:
			names[i] += " in " + dir
		}
	}
	return names
}

// nameOf is the name that a landscape has after the change, or had before it; empty where it cannot be read.
func (d *diffing) nameOf(dir string) string {
	repo, err := source.Open(dir)
	if d.live || err != nil {
		return nameInFile(os.DirFS(dir), landscapeFile)
	}
	folder, err := repo.Rel(dir)
	if err != nil {
		return ""
	}
	for _, rev := range []string{d.to, d.from} {
		var files fs.FS = os.DirFS(repo.Root)
		if rev != "" {
			at, err := repo.At(strings.TrimSuffix(rev, "..."))
			if err != nil {
				continue
			}
			files = at.FS
		}
		if name := nameInFile(files, path.Join(folder, landscapeFile)); name != "" {
			return name
		}
	}
	return ""
}
