// SPDX-License-Identifier: Apache-2.0

package testselection

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestListedTestsExist checks that tests.txt lists each test once, and that exactly one test has
// each listed name.
func TestListedTestsExist(t *testing.T) {
	root := "../.."
	tests := map[string]int{}
	declared := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	require.NoError(t, filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() && strings.HasPrefix(entry.Name(), ".") && path != root {
			return fs.SkipDir
		}
		if !strings.HasSuffix(path, "_test.go") {
			return nil
		}
		text, err := os.ReadFile(path)
		for _, found := range declared.FindAllStringSubmatch(string(text), -1) {
			tests[found[1]]++
		}
		return err
	}))
	listed := map[string]bool{}
	for _, l := range readList() {
		assert.Contains(t, []string{"check", "test"}, l.speed, l.test)
		assert.False(t, listed[l.speed+l.test], "%s is listed twice", l.test)
		listed[l.speed+l.test] = true
		if strings.Contains(l.test, "/") {
			assert.DirExists(t, filepath.Join(root, l.test))
			continue
		}
		assert.Equal(t, 1, tests[l.test], "tests of the name %s", l.test)
	}
	assert.Greater(t, len(listed), 20)
}

func TestSampleListed(t *testing.T) {
	of := listText
	t.Cleanup(func() { listText = of })
	listText = "test TestSampleListed/x: a\ntest TestSampleListed: 3, 9 # why\n\ntest a/folder: one, two words\n"
	var points []int
	for n := range Points(t) {
		if points = append(points, n); len(points) == 4 {
			break
		}
	}
	if !testing.Short() {
		assert.Equal(t, []int{1, 2, 3, 4}, points)
		assert.True(t, HasPart(t, "anything"))
		return
	}
	assert.Equal(t, []int{3, 9}, points)
	assert.True(t, HasPart(t, "9"))
	assert.False(t, HasPart(t, "4"))
	seen, _ := requestedParts.Load(t.Name())
	assert.Equal(t, []string{"3"}, unrequestedParts([]string{"3", "9"}, seen.(*sync.Map)))
	assert.True(t, HasPart(t, "3"))
	assert.True(t, SuiteHasPart("a/folder", "two words"))
	assert.False(t, SuiteHasPart("a/folder", "three"))
}
