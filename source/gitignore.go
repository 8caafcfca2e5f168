// SPDX-License-Identifier: Apache-2.0

package source

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/config"
	"github.com/go-git/go-git/v5/plumbing/format/gitignore"
	"github.com/go-git/go-git/v5/plumbing/object"
)

// ignoreFile contains git's ignore patterns, in each folder of a work tree.
const ignoreFile = ".gitignore"

// Ignored returns the files of a folder that no clone has. Git ignores them because of a .gitignore
// or info/exclude, and the last commit does not contain them. Paths are relative to the folder, and
// may leave it. The user's own patterns (core.excludesFile) do not count. Without a repository,
// nothing is ignored.
func Ignored(dir string, files []string) ([]string, error) {
	root, inside, err := repositoryTop(dir)
	if err != nil || root == "" {
		return nil, err
	}
	patterns := map[string][]gitignore.Pattern{}
	var found, names []string
	for _, file := range files {
		name, err := filepath.Rel(root, filepath.Join(inside, file))
		if err != nil || name == ".." || strings.HasPrefix(name, ".."+string(filepath.Separator)) {
			continue
		}
		parts := strings.Split(filepath.ToSlash(name), "/")
		all, err := ignorePatterns(root, parts[:len(parts)-1], patterns)
		if err != nil {
			return nil, err
		}
		if gitignore.NewMatcher(all).Match(parts, false) {
			found, names = append(found, file), append(names, strings.Join(parts, "/"))
		}
	}
	if len(found) == 0 {
		return nil, nil
	}
	repo, err := Open(dir)
	if err != nil {
		return nil, err
	}
	return repo.uncommittedOf(found, names)
}

// repositoryTop returns the top of the repository that contains a folder, and that folder without
// links; the result is empty if there is no repository.
func repositoryTop(dir string) (root, inside string, err error) {
	inside, err = absoluteRealPath(dir)
	if err != nil {
		return "", "", err
	}
	for root = inside; ; root = filepath.Dir(root) {
		switch _, found, err := findGitDir(root); {
		case err != nil: // the code that needs the repository reports its error
			return "", "", nil
		case found:
			return root, inside, nil
		}
		if root == filepath.Dir(root) {
			return "", "", nil
		}
	}
}

// ignorePatterns returns the patterns of a folder and its parents, up to the root.
func ignorePatterns(root string, folder []string, known map[string][]gitignore.Pattern) ([]gitignore.Pattern, error) {
	name := strings.Join(folder, "/")
	if patterns, ok := known[name]; ok {
		return patterns, nil
	}
	var patterns []gitignore.Pattern
	if len(folder) > 0 {
		above, err := ignorePatterns(root, folder[:len(folder)-1], known)
		if err != nil {
			return nil, err
		}
		patterns = append(patterns, above...)
	}
	var sources []string
	if len(folder) == 0 {
		if dir, found, err := findGitDir(root); err == nil && found {
			sources = append(sources, filepath.Join(dir.common, "info", "exclude"))
		}
	}
	// later patterns take precedence
	for _, source := range append(sources, filepath.Join(root, filepath.FromSlash(name), ignoreFile)) {
		data, err := os.ReadFile(source)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("read what git ignores: %w", err)
		}
		for line := range strings.Lines(string(data)) {
			if line = strings.TrimRight(line, "\r\n"); strings.TrimSpace(line) != "" && !strings.HasPrefix(line, "#") {
				patterns = append(patterns, gitignore.ParsePattern(line, folder))
			}
		}
	}
	known[name] = patterns
	return patterns, nil
}

// uncommittedOf returns the files whose names the last commit does not have.
func (r *Repository) uncommittedOf(files, names []string) (out []string, err error) {
	defer r.recoverPanic(&err)
	tree := &object.Tree{}
	last, err := r.Head()
	if err == nil && last != nil {
		tree, err = last.Tree()
	}
	if err != nil {
		return nil, fmt.Errorf("read the last commit of %s: %w", r.Root, err)
	}
	for i, name := range names {
		if last != nil {
			if _, err := tree.FindEntry(name); err == nil {
				continue
			}
		}
		out = append(out, files[i])
	}
	return out, nil
}

// EmptySubmodules returns the paths of submodules in a folder that are not checked out, so their
// files are missing.
func EmptySubmodules(dir string) ([]string, error) {
	root, inside, err := repositoryTop(dir)
	if err != nil || root == "" {
		return nil, err
	}
	data, err := os.ReadFile(filepath.Join(root, ".gitmodules"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	modules := config.NewModules()
	if err == nil {
		err = modules.Unmarshal(data)
	}
	if err != nil {
		return nil, fmt.Errorf("read the submodules: %w", err)
	}
	var out []string
	for _, module := range modules.Submodules {
		if !filepath.IsLocal(filepath.FromSlash(module.Path)) {
			continue // git refuses it, too
		}
		path := filepath.Join(root, filepath.FromSlash(module.Path))
		name, err := filepath.Rel(inside, path)
		if err != nil || !filepath.IsLocal(name) {
			continue
		}
		if entries, err := os.ReadDir(path); err == nil && len(entries) == 0 {
			out = append(out, filepath.ToSlash(name))
		}
	}
	slices.Sort(out)
	return out, nil
}
