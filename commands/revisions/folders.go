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

// File is the file that makes a folder a landscape.
const File = "landscape.yaml"

// Shown names a revision; "" is the work tree.
func Shown(rev string) string {
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
		case entry.Type().IsRegular() && entry.Name() == File:
			names[path.Dir(name)] = NameInFile(files, name)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("find the landscapes of %s: %w", Shown(rev), err)
	}
	return names, nil
}

// NameInFile returns the name in a landscape.yaml, "" if it cannot be read: loading it reports the
// error.
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

// Renamed maps the new folder of each moved landscape to the old one. A landscape in both states
// was copied, and duplicate names are ambiguous; both are ignored.
func Renamed(before, after map[string]string) map[string]string {
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

// withoutFormer removes folders whose landscape has moved by the change.
func withoutFormer(repo *source.Repository, folders []string, top, from, to string) ([]string, error) {
	before, err := Landscapes(repo, top, from)
	if err != nil {
		return nil, err
	}
	after, err := Landscapes(repo, top, to)
	if err != nil {
		return nil, err
	}
	former := slices.Collect(maps.Values(Renamed(before, after)))
	return slices.DeleteFunc(folders, func(folder string) bool {
		rel, err := repo.Rel(folder)
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
	inside, err := repo.Rel(top)
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
	if found, err = withoutFormer(repo, slices.Compact(found), inside, from, to); err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("%s has no landscape, which is a folder with a file %s", top, File)
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
			out = append(out, written(filepath.Join(repo.Root, filepath.FromSlash(folder))))
		}
	}
	return out, nil
}

// load reads a landscape of the repository; the comparison reports its findings.
func (r Reader) load(ctx context.Context, repo *source.Repository, folder, rev string) (*landscapes.Landscape, error) {
	dir := written(filepath.Join(repo.Root, filepath.FromSlash(folder)))
	if rev == "" {
		l, _, err := r.Load(ctx, dir)
		return l, err
	}
	l, _, _, err := r.LoadAt(ctx, repo, dir, rev)
	return l, err
}

// written returns a folder relative to the working directory, if it is below.
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

// Names returns the names of landscapes for a report: with the folder if two have the same name, or
// only the folder without a name.
func Names(dirs []string, nameOf func(dir string) string) []string {
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

// NameIn returns a landscape's name in the first revision that has it; "" as a revision is the work
// tree. The result is "" if it cannot be read.
func NameIn(dir string, revs ...string) string {
	repo, err := source.Open(dir)
	if err != nil {
		return NameInFile(os.DirFS(dir), File)
	}
	folder, err := repo.Rel(dir)
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
		if name := NameInFile(files, path.Join(folder, File)); name != "" {
			return name
		}
	}
	return ""
}
