// SPDX-License-Identifier: Apache-2.0

package revisions

import (
	"cmp"
	"context"
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

	"github.com/pergola-dev/pergola/landscapes"
	"github.com/pergola-dev/pergola/source"
)

// LandscapeFile is the file that makes a folder a landscape.
const LandscapeFile = "landscape.yaml"

// RevisionText names a revision; "" is the work tree.
func RevisionText(rev string) string {
	if rev == "" {
		return "the work tree"
	}
	return "revision " + rev
}

// The name identifies a landscape, so a renamed folder is not a new landscape.

// Landscapes returns the names of the landscapes below a folder by their folders, in a revision or
// the work tree.
func Landscapes(repo *source.Repository, top, rev string) (map[string]string, error) {
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
		case entry.Type().IsRegular() && entry.Name() == LandscapeFile:
			names[path.Dir(name)] = NameInFile(files, name)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("find the landscapes of %s: %w", RevisionText(rev), err)
	}
	return names, nil
}

// NameInFile returns the name in a landscape.yaml; the result is "" if it cannot be read: loading
// it reports the error.
func NameInFile(files fs.FS, name string) string {
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

// RenamedFolders maps the new folder of each moved landscape to the old one. A landscape in both
// states was copied, and duplicate names are ambiguous; both are ignored.
func RenamedFolders(before, after map[string]string) map[string]string {
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

// withoutRenamed removes folders whose landscape has moved by the change.
func withoutRenamed(repo *source.Repository, folders []string, top, from, to string) ([]string, error) {
	before, err := Landscapes(repo, top, from)
	if err != nil {
		return nil, err
	}
	after, err := Landscapes(repo, top, to)
	if err != nil {
		return nil, err
	}
	former := slices.Collect(maps.Values(RenamedFolders(before, after)))
	return slices.DeleteFunc(folders, func(folder string) bool {
		rel, err := repo.RelativePath(folder)
		return err == nil && slices.Contains(former, rel)
	}), nil
}

// Folders returns all landscapes at or below a folder of the work tree, or in its repository for
// "", in either revision; "" is the work tree. base returns the revision to compare from.
func (r Reader) Folders(ctx context.Context, top string, base func(*source.Repository) (string, error), to string) ([]string, error) {
	repo, err := source.Open(cmp.Or(top, "."))
	if err != nil {
		return nil, err
	}
	if top == "" {
		top = repo.Root
	}
	inside, err := repo.RelativePath(top)
	if err != nil {
		return nil, err
	}
	from, err := base(repo)
	if err != nil {
		return nil, err
	}
	var found []string
	for _, rev := range []string{from, to} {
		more, err := r.landscapesIn(ctx, repo, inside, rev)
		if err != nil {
			return nil, err
		}
		found = append(found, more...)
	}
	slices.Sort(found)
	if found, err = withoutRenamed(repo, slices.Compact(found), inside, from, to); err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("%s has no landscape, which is a folder with a file %s", top, LandscapeFile)
	}
	return found, nil
}

// landscapesIn returns the landscapes of a revision, except layers of others.
func (r Reader) landscapesIn(ctx context.Context, repo *source.Repository, top, rev string) ([]string, error) {
	names, err := Landscapes(repo, top, rev)
	if err != nil {
		return nil, err
	}
	folders := slices.Sorted(maps.Keys(names))
	layers := map[string]bool{}
	for _, folder := range folders {
		l, err := r.load(ctx, repo, folder, rev)
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
			out = append(out, relativeFolder(filepath.Join(repo.Root, filepath.FromSlash(folder))))
		}
	}
	return out, nil
}

// load reads a landscape of the repository; the comparison reports its findings.
func (r Reader) load(ctx context.Context, repo *source.Repository, folder, rev string) (*landscapes.Landscape, error) {
	dir := relativeFolder(filepath.Join(repo.Root, filepath.FromSlash(folder)))
	if rev == "" {
		l, _, err := r.Load(ctx, dir)
		return l, err
	}
	l, _, _, err := r.LoadAt(ctx, repo, dir, rev)
	return l, err
}

// relativeFolder returns a folder relative to the working directory, if it is below.
func relativeFolder(dir string) string {
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

// ReportNames returns the names of landscapes for a report: with the folder if two have the same
// name, or only the folder without a name.
func ReportNames(dirs []string, nameOf func(dir string) string) []string {
	names, count := make([]string, len(dirs)), map[string]int{}
	for i, dir := range dirs {
		names[i] = nameOf(dir)
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

// NameInRevisions returns a landscape's name in the first revision that has it; "" as a revision is
// the work tree. The result is "" if it cannot be read.
func NameInRevisions(dir string, revs ...string) string {
	repo, err := source.Open(dir)
	if err != nil {
		return NameInFile(os.DirFS(dir), LandscapeFile)
	}
	folder, err := repo.RelativePath(dir)
	if err != nil {
		return ""
	}
	for _, rev := range revs {
		var files fs.FS = os.DirFS(repo.Root)
		if rev != "" {
			at, err := repo.At(rev)
			if err != nil {
				continue
			}
			files = at.FS
		}
		if name := NameInFile(files, path.Join(folder, LandscapeFile)); name != "" {
			return name
		}
	}
	return ""
}
