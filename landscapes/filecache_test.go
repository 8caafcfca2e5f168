// SPDX-License-Identifier: Apache-2.0

package landscapes

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pergola-dev/pergola/schemas"
	"github.com/pergola-dev/pergola/schemas/resultcache"
)

var validationTime = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// readMemoryFS returns a folder as a file system that can be changed.
func readMemoryFS(t *testing.T, dir string) fstest.MapFS {
	t.Helper()
	files := fstest.MapFS{}
	require.NoError(t, fs.WalkDir(os.DirFS(dir), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || strings.HasPrefix(name, "golden") {
			return err
		}
		data, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(name)))
		files[name] = &fstest.MapFile{Data: data}
		return err
	}))
	return files
}

// loadAndValidate returns the findings of loading and validation, and the place of each
// declaration.
func loadAndValidate(t *testing.T, files fs.FS, dir string, before *Landscape, opts Options) (*Landscape, []string) {
	t.Helper()
	l, violations, err := LoadFS(t.Context(), files, dir, opts)
	require.NoError(t, err)
	found, err := l.ValidateAt(t.Context(), validationTime, before, schemas.Options{})
	require.NoError(t, err)
	lines := summaries(append(violations, found...))
	for i := range l.Declarations {
		d := &l.Declarations[i]
		lines = append(lines, strings.Join([]string{identityOf(d).String(), d.File, d.Layer, string(d.Secret), fmt.Sprint(d.Line, d.Column)}, " "))
	}
	return l, lines
}

// TestCachedFindingsMatch: after each change of a landscape, the findings with a cache
// equal those without.
func TestCachedFindingsMatch(t *testing.T) {
	replace := func(name, before, after string) func(*testing.T, fstest.MapFS) {
		return func(t *testing.T, files fstest.MapFS) {
			text := string(files[name].Data)
			require.Contains(t, text, before, name)
			files[name] = &fstest.MapFile{Data: []byte(strings.Replace(text, before, after, 1))}
		}
	}
	set := func(name, text string) func(*testing.T, fstest.MapFS) {
		return func(_ *testing.T, files fstest.MapFS) { files[name] = &fstest.MapFile{Data: []byte(text)} }
	}
	remove := func(name string) func(*testing.T, fstest.MapFS) {
		return func(_ *testing.T, files fstest.MapFS) { delete(files, name) }
	}
	const shoot, seed, profile, project = "projects/local/shoot.yaml", "seeds/local.yaml", "gardenconfig/cloudprofile.yaml", "projects/local/project.yaml"
	files := readMemoryFS(t, "local")
	dir := t.TempDir()
	var before, beforeKept *Landscape
	opts := Options{}
	for _, step := range []struct {
		name   string
		change func(*testing.T, fstest.MapFS)
	}{
		{"first", nil}, {"nothing", nil},
		{"a rule is broken", replace(shoot, "minimum: 1", "minimum: 9")}, {"nothing again", nil},
		{"the place moves", replace(shoot, "apiVersion:", "# a comment\napiVersion:")},
		{"it is mended", replace(shoot, "minimum: 9", "minimum: 1")},
		{"the structure is broken", replace(shoot, "spec:", "spce:")}, {"and mended", replace(shoot, "spce:", "spec:")},
		{"no YAML", replace(shoot, "spec:", "spec: [")}, {"YAML", replace(shoot, "spec: [", "spec:")},
		{"another Seed", replace(seed, "name: local", "name: other")}, {"the old one", replace(seed, "name: other", "name: local")},
		{"the profile is gone", remove(profile)}, {"and back", func(t *testing.T, files fstest.MapFS) { files[profile] = readMemoryFS(t, "local")[profile] }},
		{"the namespace of the project", replace(project, "namespace: garden-local", "namespace: garden-lokal")},
		{"as it was", replace(project, "namespace: garden-lokal", "namespace: garden-local")},
		{"twice the same", set("twice.yaml", string(files[shoot].Data))}, {"once", remove("twice.yaml")},
		{"a file is renamed", func(_ *testing.T, files fstest.MapFS) { files["renamed.yaml"] = files[shoot]; delete(files, shoot) }},
		{"a Secret in plain", set("plain.yaml", "apiVersion: v1\nkind: Secret\nmetadata: {name: a, namespace: garden}\nstringData: {a: b}\n")},
		{"a list", set("list.yaml", "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Namespace, metadata: {name: b}}\n- {apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: b}, data: {a: b}}\n")},
		{"a list without items", set("list.yaml", "apiVersion: v1\nkind: List\nitem:\n- {apiVersion: v1, kind: Namespace, metadata: {name: b}}\n")},
		{"a list that is none", set("list.yaml", "apiVersion: v1\nkind: List\nitems: foo\n")},
		{"in CUE", set("d.cue", "a: {apiVersion: \"v1\", kind: \"Namespace\", metadata: name: \"d\"}\n")},
		{"not in CUE", remove("d.cue")},
		{"not text", set("list.yaml", "\x00")},
	} {
		if step.change != nil {
			step.change(t, files)
		}
		fresh, want := loadAndValidate(t, files, ".", before, opts)
		with := opts
		with.ResultCache = resultcache.Open(dir, "x")
		l, got := loadAndValidate(t, files, ".", beforeKept, with)
		require.Equal(t, want, got, step.name)
		require.NoError(t, with.ResultCache.Save())
		_, got = loadAndValidate(t, files, ".", l, with)
		_, want = loadAndValidate(t, files, ".", fresh, opts)
		require.Equal(t, want, got, "%s: without a change", step.name)
		before, beforeKept = fresh, l
	}
}

// TestCachedLayers: an object of several layers has the content of all of them.
func TestCachedLayers(t *testing.T) {
	files := readMemoryFS(t, "examples/layered")
	dir := t.TempDir()
	var folders []string
	for name := range files {
		if path.Base(name) == configFile {
			folders = append(folders, path.Dir(name))
		}
	}
	require.NotEmpty(t, folders)
	for range 2 {
		for _, folder := range folders {
			_, want := loadAndValidate(t, files, folder, nil, Options{})
			store := resultcache.Open(dir, folder)
			_, got := loadAndValidate(t, files, folder, nil, Options{ResultCache: store})
			require.Equal(t, want, got)
			require.NoError(t, store.Save())
		}
	}
}

// TestCacheDependsOnKeys: cached results of an encrypted file depend on the key.
func TestCacheDependsOnKeys(t *testing.T) {
	files := tree(map[string]string{"landscape.yaml": bareConfig, "secret.yaml": sopsFile(t, "secret.yaml")})
	store := resultcache.Open(t.TempDir(), "x")
	for range 2 {
		for _, opts := range []Options{{}, testKey(t)} {
			l, want := loadAndValidate(t, files, ".", nil, opts)
			opts.ResultCache = store
			again, got := loadAndValidate(t, files, ".", nil, opts)
			assert.Equal(t, want, got)
			require.Len(t, again.Declarations, len(l.Declarations))
			for i := range l.Declarations {
				assert.Equal(t, l.Declarations[i].Object(), again.Declarations[i].Object())
				assert.Equal(t, l.Declarations[i].EncryptedContent(), again.Declarations[i].EncryptedContent())
			}
		}
	}
}
