// SPDX-License-Identifier: Apache-2.0

package render

import (
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestUnusedOverlayFiles: such files have no effect, and each is reported.
func TestUnusedOverlayFiles(t *testing.T) {
	const object = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: garden}\n"
	for name, test := range map[string]struct {
		kustomization string
		files         []string
		want          []string
	}{
		"a resource":               {"resources: [a.yaml]", []string{"a.yaml"}, nil},
		"a patch":                  {"patches: [{path: a.yaml}]", []string{"a.yaml"}, nil},
		"a patch beside":           {"patches: [{path: a.yaml}]", []string{"a.yaml", "b.yaml"}, []string{"b.yaml"}},
		"an old patch":             {"patchesStrategicMerge: [a.yaml]", []string{"a.yaml"}, nil},
		"an operation in JSON":     {"resources: [a.yaml]", []string{"a.yaml", "b.json"}, []string{"b.json"}},
		"content of a ConfigMap":   {"configMapGenerator: [{name: c, files: [key=a.yml]}]", []string{"a.yml"}, nil},
		"an environment":           {"configMapGenerator: [{name: c, envs: [a.yaml]}]", []string{"a.yaml"}, nil},
		"a folder of resources":    {"resources: [sub]", []string{"sub/kustomization.yaml", "sub/a.yaml"}, []string{"sub/a.yaml"}},
		"a folder that none names": {"commonAnnotations: {x: a}", []string{"sub/kustomization.yaml", "a.yaml"}, []string{"a.yaml", "sub/kustomization.yaml"}},
		"for people":               {"commonAnnotations: {x: a}", []string{"README.md", "notes.txt", ".hidden.yaml", ".git/a.yaml"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			files := fstest.MapFS{"o/kustomization.yaml": {Data: []byte(test.kustomization + "\n")}}
			for _, file := range test.files {
				text := object
				if file == "sub/kustomization.yaml" {
					text = "commonAnnotations: {x: z}\n"
				}
				files["o/"+file] = &fstest.MapFile{Data: []byte(text)}
			}
			read, err := Overlay{FS: files, Dir: "o", Name: "o"}.loadFiles()
			require.NoError(t, err)
			unread, err := read.unusedFiles()
			require.NoError(t, err)
			var got []string
			for _, f := range unread {
				got = append(got, f.File)
				assert.True(t, f.warning)
			}
			for i := range test.want {
				test.want[i] = "o/" + test.want[i]
			}
			assert.Equal(t, test.want, got)
		})
	}
}
