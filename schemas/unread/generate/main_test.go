// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestTableIsCurrent checks fields.tsv against the current sources.
func TestTableIsCurrent(t *testing.T) {
	want, err := generate(os.DirFS(filepath.Join("..", "..", "..")))
	require.NoError(t, err)
	got, err := os.ReadFile(filepath.Join("..", "fields.tsv"))
	require.NoError(t, err)
	assert.Equal(t, want, string(got), "run make generate")
}

// TestIsRead checks which fields count as read.
func TestIsRead(t *testing.T) {
	for name, tt := range map[string]struct {
		file, text string
		// read and whole concern field b below a, whose Go name is B.
		read, whole bool
	}{
		"nothing":                    {"components/a.cue", "x: 1", false, false},
		"a field of that name":       {"components/a.cue", "a: b: 1", false, false},
		"the value":                  {"components/a.cue", "x: y.spec.a.b", true, true},
		"the value of an optional":   {"components/a.cue", `x: y.spec.a["b"]`, true, true},
		"a part of the value":        {"components/a.cue", "x: y.a.b.c", true, false},
		"below another field":        {"components/a.cue", "x: y.c.b", false, false},
		"below what has a name here": {"components/a.cue", "_z: y.a\nx: _z.b.c", true, false},
		"a name for the value":       {"components/a.cue", "_z: y.a.b", true, false},
		"a name with a default":      {"components/a.cue", "let z = *y.a.b | {}\nx: z.c", true, false},
		"items":                      {"components/a.cue", "x: [for z in y.a.b {z.c}]", true, false},
		"whether it is there":        {"components/a.cue", "if y.a.b != _|_ {x: 1}", true, false},
		"in a text":                  {"components/a.cue", `x: "\(y.a.b)"`, true, true},
		"of an item":                 {"components/a.cue", "x: y[0].b.c", true, false},
		"Go":                         {"controllers/a/a.go", "package a\n\nvar x = y.A.B", true, false},
		"a path in Go":               {"render/a.go", "package a\n\nvar x = `spec.a[].b`", true, false},
		"a test":                     {"render/a_test.go", "package a\n\nvar x = y.A.B", false, false},
		"a rule about single fields": {"schemas/a.go", "package a\n\nvar x = y.A.B", false, false},
		"a rule about several":       {"schemas/crosscheck/a.go", "package a\n\nvar x = y.A.B", true, false},
	} {
		t.Run(name, func(t *testing.T) {
			root := fstest.MapFS{tt.file: {Data: []byte(tt.text)}}
			for _, folder := range readerFolders {
				root[folder+"/README.md"] = &fstest.MapFile{}
			}
			s, err := readSources(root)
			require.NoError(t, err)
			read, whole := s.isRead("a", "b", "B")
			assert.Equal(t, [2]bool{tt.read, tt.whole}, [2]bool{read, whole})
		})
	}
	_, err := readSources(fstest.MapFS{"cmd/a.go": {Data: []byte("package")}})
	require.ErrorContains(t, err, "read the sources in cmd: cmd/a.go:1:")
}
