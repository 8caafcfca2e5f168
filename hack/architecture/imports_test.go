// SPDX-License-Identifier: Apache-2.0

package architecture

import (
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	repositoryRoot = "../.."
	modulePrefix   = "github.com/pergola-dev/pergola/"
)

// The sentences of docs/explanation/architecture.md that list floors from the highest to the
// lowest: floors of the house, and floors inside controllers.
var (
	floorsSentence            = regexp.MustCompile("Imports go from left to right in this list, and never back:\n\n```\n([^`]+)```")
	controllersFloorsSentence = regexp.MustCompile("Inside `controllers` they go:\n\n```\n([^`]+)```")
)

// readFloors returns the number of each folder in a sentence; the lowest floor is 1.
func readFloors(t *testing.T, sentence *regexp.Regexp) map[string]int {
	page, err := os.ReadFile(filepath.Join(repositoryRoot, "docs/explanation/architecture.md"))
	require.NoError(t, err)
	found := sentence.FindStringSubmatch(string(page))
	require.NotNil(t, found, "docs/explanation/architecture.md does not list the floors any more: %s", sentence)
	list := strings.Split(strings.ReplaceAll(found[1], "\n", " "), "→")
	out := map[string]int{}
	for i, floor := range list {
		for folder := range strings.SplitSeq(floor, ",") {
			out[strings.TrimSpace(folder)] = len(list) - i
		}
	}
	return out
}

// eachImport calls a function for each import of this module, except in test files, with the top
// folders of both sides.
func eachImport(t *testing.T, call func(file, from, path, to string)) {
	require.NoError(t, filepath.WalkDir(repositoryRoot, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := entry.Name()
		if entry.IsDir() && path != repositoryRoot && (strings.HasPrefix(name, ".") || name == "testdata" || path == filepath.Join(repositoryRoot, "hack")) {
			return fs.SkipDir
		}
		if entry.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(repositoryRoot, path)
		if err != nil {
			return err
		}
		from, _, _ := strings.Cut(filepath.ToSlash(relative), "/")
		for _, i := range file.Imports {
			imported, err := strconv.Unquote(i.Path.Value)
			if err != nil {
				return fmt.Errorf("%s: %w", relative, err)
			}
			if below, ours := strings.CutPrefix(imported, modulePrefix); ours {
				to, _, _ := strings.Cut(below, "/")
				call(relative, from, below, to)
			}
		}
		return nil
	}))
}

func TestImportsGoDown(t *testing.T) {
	number, seen := readFloors(t, floorsSentence), map[string]bool{}
	eachImport(t, func(file, from, path, to string) {
		seen[from], seen[to] = true, true
		if from != to && assert.Contains(t, number, from, file) && assert.Contains(t, number, to, file) {
			assert.Greater(t, number[from], number[to], "%s imports %s, which is not on a lower floor than %s", file, path, from)
		}
	})
	for folder := range number {
		assert.True(t, seen[folder], "docs/explanation/architecture.md lists %s, which neither imports nor is imported", folder)
	}
}

// TestImportsInsideControllersGoDown also fails if a package that the page does not list imports
// another package of controllers.
func TestImportsInsideControllersGoDown(t *testing.T) {
	number, seen := readFloors(t, controllersFloorsSentence), map[string]bool{}
	eachImport(t, func(file, _, path, _ string) {
		from, isIn := strings.CutPrefix(filepath.ToSlash(filepath.Dir(file)), "controllers/")
		to, isTo := strings.CutPrefix(path, "controllers/")
		if isIn && isTo {
			seen[from], seen[to] = true, true
			assert.Greater(t, number[from], number[to], "%s imports %s, which is not on a lower floor of controllers than %s", file, path, from)
		}
	})
	for name := range number {
		assert.True(t, seen[name], "docs/explanation/architecture.md lists %s, which neither imports nor is imported inside controllers", name)
	}
}
