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

// File makes a folder a landscape.
const File = "landscape.yaml"

// Shown names a revision, empty for the work tree.
func Shown(rev string) string {
	if rev == "" {
		return "the work tree"
	}
	return "revision " + rev
}

// A landscape is the one of its name, in whatever folder: so a folder that was renamed is no new
// landscape.

// Landscapes gives the names of the landscapes of a revision, or of the work tree, by their folders
// below another one.
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

// NameInFile is the name that a landscape.yaml gives, empty where it cannot be read: what is wrong
// with it is said when it is loaded.
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

// Renamed gives the folder that each landscape had whose folder is new, by the new one. A landscape
// that is in both states was copied, and of two of one name nobody can tell which it is.
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

// withoutFormer takes out of folders those whose landscape has another folder after the change.
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

// Folders are all landscapes at or below a folder of the work tree, empty for its whole repository,
// in a revision or another one; an empty revision is the work tree. base gives the first one in the
// repository that is found.
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

// landscapesIn finds the landscapes of a side, without those that others build on.
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

// load reads a landscape of the repository; what is wrong with it is said when it is compared.
func (r Reader) load(ctx context.Context, repo *source.Repository, folder, rev string) (*landscapes.Landscape, error) {
	dir := written(filepath.Join(repo.Root, filepath.FromSlash(folder)))
	if rev == "" {
		l, _, err := r.Load(ctx, dir)
		return l, err
	}
	l, _, _, err := r.LoadAt(ctx, repo, dir, rev)
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

// Names are those by which a report tells landscapes apart: their own, with the folder where two
// have the same one, or none can be read.
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

// NameIn is the name that a landscape has in the first of some revisions that has it, empty for the
// work tree; empty where it cannot be read.
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
