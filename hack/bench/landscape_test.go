// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pergola-dev/pergola/landscapes"
	"github.com/pergola-dev/pergola/schemas"
)

// TestLandscapeIsValid: an error in the landscape would end the bench after minutes.
func TestLandscapeIsValid(t *testing.T) {
	const count = 60
	l := testLandscape(t, count)
	found := findings(t, l)
	assert.Empty(t, found)

	loaded, _, err := landscapes.Load(t.Context(), l.dir, landscapes.Options{})
	require.NoError(t, err)
	kinds := map[string]int{}
	for _, d := range loaded.Declarations {
		kinds[d.Object().GetKind()]++
	}
	for kind, want := range map[string]int{"Garden": 1, "Seed": seedCount, "Project": 50, "CredentialsBinding": 50, "Shoot": count} {
		assert.Equal(t, want, kinds[kind], kind)
	}
	assert.Len(t, l.files, count)
}

// TestChange checks that each change affects one other Shoot, which stays valid.
func TestChange(t *testing.T) {
	l := testLandscape(t, 5)
	before := contents(t, l)
	seen := map[string]bool{}
	for range 3 {
		require.NoError(t, l.change())
		now := contents(t, l)
		var changed []string
		for name := range now {
			if now[name] != before[name] {
				changed = append(changed, name)
			}
		}
		require.Len(t, changed, 1)
		assert.False(t, seen[changed[0]], changed[0])
		seen[changed[0]], before = true, now
	}
	assert.Empty(t, findings(t, l))
}

// TestShoots checks that Shoots are reproducible, and differ in more than their names.
func TestShoots(t *testing.T) {
	different := map[string]map[any]bool{}
	note := func(what string, value any) {
		if different[what] == nil {
			different[what] = map[any]bool{}
		}
		different[what][value] = true
	}
	const count = 2000
	for i := range count {
		x := newShoot(i, 0, seeds(), projects())
		require.Equal(t, x, newShoot(i, 0, seeds(), projects()))
		require.NotEmpty(t, x.Pools)
		require.LessOrEqual(t, len(x.Name)+len(x.Project.Name), 21, x.Name)
		note("name", x.Name)
		note("project", x.Project.Name)
		note("seed", x.Seed.Name)
		note("version", x.Version)
		note("pools", len(x.Pools))
		note("nodes", x.Nodes)
		note("window", x.Begin+x.End)
		note("schedules", len(x.Schedules))
		note("audit and authentication", [2]bool{x.Audit, x.Authentication})
	}
	for what, least := range map[string]int{
		"name": count, "project": 50, "seed": seedCount, "version": 5, "pools": 4, "nodes": 200, "window": 200, "schedules": 3, "audit and authentication": 4,
	} {
		assert.GreaterOrEqual(t, len(different[what]), least, what)
	}
}

func testLandscape(t *testing.T, shoots int) *landscape {
	t.Helper()
	l, err := writeLandscape(settings{repository: filepath.Join("..", ".."), shoots: shoots}, t.TempDir())
	require.NoError(t, err)
	return l
}

// findings returns violations without warnings about unread fields: real Shoots set such fields.
func findings(t *testing.T, l *landscape) []schemas.Violation {
	t.Helper()
	loaded, violations, err := landscapes.Load(t.Context(), l.dir, landscapes.Options{})
	require.NoError(t, err)
	require.Empty(t, violations)
	found, err := loaded.Validate(t.Context(), schemas.Options{})
	require.NoError(t, err)
	return slices.DeleteFunc(found, func(v schemas.Violation) bool { return strings.HasSuffix(v.Rule, "/unread-fields") })
}

func contents(t *testing.T, l *landscape) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, name := range l.files {
		data, err := os.ReadFile(filepath.Join(l.dir, name))
		require.NoError(t, err)
		out[name] = string(data)
		require.True(t, strings.HasPrefix(out[name], "apiVersion: core.gardener.cloud/v1beta1\nkind: Shoot\n"), name)
	}
	return out
}
