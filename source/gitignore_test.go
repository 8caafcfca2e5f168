// SPDX-License-Identifier: Apache-2.0

package source

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestIgnored compares each pattern with git.
func TestIgnored(t *testing.T) {
	files := []string{"a.yaml", "secret.yaml", "deep/secret.yaml", "deep/b.yaml", "build/c.yaml", "keep/secret.yaml"}
	for name, test := range map[string]struct {
		ignore map[string]string
		want   []string
	}{
		"nothing":                {nil, nil},
		"a name at any depth":    {map[string]string{".gitignore": "secret.yaml\n"}, []string{"secret.yaml", "deep/secret.yaml", "keep/secret.yaml"}},
		"at the top only":        {map[string]string{".gitignore": "/l/secret.yaml\n"}, []string{"secret.yaml"}},
		"a folder":               {map[string]string{".gitignore": "build/\n"}, []string{"build/c.yaml"}},
		"a folder's own":         {map[string]string{"l/deep/.gitignore": "*.yaml\n"}, []string{"deep/secret.yaml", "deep/b.yaml"}},
		"taken back":             {map[string]string{".gitignore": "secret.yaml\n", "l/keep/.gitignore": "!secret.yaml\n"}, []string{"secret.yaml", "deep/secret.yaml"}},
		"excluded here":          {map[string]string{".git/info/exclude": "secret.yaml\n", "l/keep/.gitignore": "!secret.yaml\n"}, []string{"secret.yaml", "deep/secret.yaml"}},
		"comments, empty, spots": {map[string]string{".gitignore": "# a.yaml\n\n*.json\r\nl/**/b.yaml\r\n"}, []string{"deep/b.yaml"}},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			inGit(t, root, "init", "-q")
			for _, file := range files {
				write(t, root, "l/"+file, "a: b\n")
			}
			for file, text := range test.ignore {
				write(t, root, file, text)
			}
			l := filepath.Join(root, "l")
			got, err := Ignored(l, files)
			require.NoError(t, err)
			assert.Equal(t, test.want, got)
			if len(test.want) > 0 {
				assert.Equal(t, strings.Join(test.want, "\n"), inGit(t, l, append([]string{"check-ignore"}, files...)...), "as git sees it")
			}

			inGit(t, root, "add", "--all", "--force")
			inGit(t, root, "commit", "-qm", "all")
			got, err = Ignored(l, files)
			require.NoError(t, err)
			assert.Empty(t, got, "what is committed is there in every clone")
		})
	}
	got, err := Ignored(t.TempDir(), files)
	require.NoError(t, err)
	assert.Empty(t, got, "in no repository")
}

// TestEmptySubmodules: the folder of a submodule that is not checked out is empty.
func TestEmptySubmodules(t *testing.T) {
	root := t.TempDir()
	inGit(t, root, "init", "-q")
	write(t, root, "l/landscape.yaml", "a: b\n")
	write(t, root, "l/there/a.yaml", "a: b\n")
	require.NoError(t, os.MkdirAll(filepath.Join(root, "l", "gone"), 0o755))
	require.NoError(t, os.MkdirAll(filepath.Join(root, "beside"), 0o755))
	got, err := EmptySubmodules(filepath.Join(root, "l"))
	require.NoError(t, err)
	assert.Empty(t, got)
	for _, path := range []string{"l/gone", "l/there", "beside"} {
		inGit(t, root, "config", "--file", ".gitmodules", "submodule."+path+".path", path)
		inGit(t, root, "config", "--file", ".gitmodules", "submodule."+path+".url", "https://git.example.org/a.git")
	}
	got, err = EmptySubmodules(filepath.Join(root, "l"))
	require.NoError(t, err)
	assert.Equal(t, []string{"gone"}, got)
}
