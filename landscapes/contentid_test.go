// SPDX-License-Identifier: Apache-2.0

package landscapes

import (
	"fmt"
	"io/fs"
	"runtime"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pergola-dev/pergola/schemas"
	"github.com/pergola-dev/pergola/schemas/resultcache"
)

// contentIDTestFS is a file system that identifies content by its text, and records opened files.
type contentIDTestFS struct {
	fstest.MapFS
	mutex  sync.Mutex
	opened []string
}

func (f *contentIDTestFS) ContentID(name string) (string, bool) {
	file, ok := f.MapFS[name]
	if !ok {
		return "", false
	}
	return "text " + string(file.Data), true
}

func (f *contentIDTestFS) Open(name string) (fs.File, error) {
	if name == "a.yaml" || name == "b.yaml" {
		f.mutex.Lock()
		f.opened = append(f.opened, name)
		f.mutex.Unlock()
	}
	return f.MapFS.Open(name)
}

// TestSameContentHasOwnPlaces: files with the same content do not share positions.
func TestSameContentHasOwnPlaces(t *testing.T) {
	text := []byte("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  namespace: garden\n  name: a\n")
	store := resultcache.InMemory()
	load := func(name string) (fstest.MapFS, *Landscape) {
		files := fstest.MapFS{
			"landscape.yaml": {Data: []byte("apiVersion: landscape.pergola.dev/v1alpha1\nkind: Landscape\nmetadata: {name: x}\n")},
			name:             {Data: text},
		}
		l, violations, err := LoadFS(t.Context(), &contentIDTestFS{MapFS: files}, ".", Options{ResultCache: store})
		require.NoError(t, err)
		require.Empty(t, violations)
		return files, l
	}
	place := func(l *Landscape) string {
		p := l.Declarations[0].Position("metadata.name")
		return fmt.Sprintf("%s:%d", p.File, p.Line)
	}
	_, before := load("a.yaml")
	files, gone := load("a.yaml")
	_, after := load("renamed.yaml")
	delete(files, "a.yaml")
	gone.Declarations[0].Object()
	assert.Equal(t, "a.yaml:1", place(gone), "a file that is gone still has the object")
	assert.Equal(t, "a.yaml:5", place(before), "what another landscape cannot read is its matter")
	assert.Equal(t, "renamed.yaml:5", place(after))
}

// TestInvalidFileNames: known content with a name that cannot be opened is a finding, not a
// panic.
func TestInvalidFileNames(t *testing.T) {
	text := []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {namespace: garden, name: a}\n")
	store := resultcache.InMemory()
	config := &fstest.MapFile{Data: []byte("apiVersion: landscape.pergola.dev/v1alpha1\nkind: Landscape\nmetadata: {name: x}\n")}
	load := func(files fstest.MapFS) []schemas.Violation {
		_, violations, err := LoadFS(t.Context(), &contentIDTestFS{MapFS: files}, ".", Options{ResultCache: store})
		require.NoError(t, err)
		return violations
	}
	require.Empty(t, load(fstest.MapFS{"landscape.yaml": config, "a.yaml": {Data: text}}))
	found := load(fstest.MapFS{"landscape.yaml": config, "a\xe9.yaml": {Data: text}})
	require.Len(t, found, 1)
	assert.Contains(t, found[0].Message, "cannot be read")
}

// TestKnownContentIsNotRead: with content identifiers, only new content is opened at once, and
// known content on demand.
func TestKnownContentIsNotRead(t *testing.T) {
	object := func(name, value string) *fstest.MapFile {
		return &fstest.MapFile{Data: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + ", namespace: garden}\ndata: {a: " + value + "}\n")}
	}
	store := resultcache.InMemory()
	load := func(b string) (*contentIDTestFS, *Landscape) {
		files := &contentIDTestFS{MapFS: fstest.MapFS{
			"landscape.yaml": {Data: []byte("apiVersion: landscape.pergola.dev/v1alpha1\nkind: Landscape\nmetadata: {name: x}\n")},
			"a.yaml":         object("a", "one"), "b.yaml": object("b", b),
		}}
		l, violations, err := LoadFS(t.Context(), files, ".", Options{ResultCache: store})
		require.NoError(t, err)
		require.Empty(t, violations)
		require.Len(t, l.Declarations, 2)
		return files, l
	}
	files, before := load("one")
	assert.ElementsMatch(t, []string{"a.yaml", "b.yaml"}, files.opened)
	files, after := load("two")
	assert.Equal(t, []string{"b.yaml"}, files.opened)
	assert.True(t, before.Declarations[0].HasSameContent(&after.Declarations[0]))
	assert.False(t, before.Declarations[1].HasSameContent(&after.Declarations[1]))

	data, _, err := unstructured.NestedMap(after.Declarations[0].Object().Object, "data")
	require.NoError(t, err)
	assert.Equal(t, map[string]any{"a": "one"}, data)
	assert.Equal(t, []string{"b.yaml"}, files.opened, "the landscape before already has it")
	runtime.KeepAlive(before)

	before, after = nil, nil
	runtime.GC()
	files, again := load("two")
	assert.Empty(t, files.opened)
	data, _, err = unstructured.NestedMap(again.Declarations[0].Object().Object, "data")
	require.NoError(t, err)
	assert.Equal(t, map[string]any{"a": "one"}, data)
	assert.Equal(t, []string{"a.yaml"}, files.opened, "whoever asks for content gets it")
	runtime.KeepAlive(again)

	again = nil
	runtime.GC()
	files, gone := load("two")
	assert.Empty(t, files.opened)
	delete(files.MapFS, "a.yaml")
	assert.PanicsWithError(t, "a.yaml existed a moment ago and can no longer be read: is the repository damaged?", func() { gone.Declarations[0].Object() },
		"going on would look as if the object were removed")
}
