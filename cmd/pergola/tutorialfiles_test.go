// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestLandscapeOfDocs: the files of docs/tutorial/first-garden.md are a valid landscape that
// renders.
func TestLandscapeOfDocs(t *testing.T) {
	page, err := os.ReadFile("../../docs/tutorial/first-garden.md")
	require.NoError(t, err)
	dir := t.TempDir()
	files := regexp.MustCompile("(?s)\n`([a-z./]+\\.yaml)` .*?```yaml\n(.*?)```").FindAllStringSubmatch(string(page), -1)
	require.Len(t, files, 3)
	for _, file := range files {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, file[1])), 0o755))
		writeFile(t, dir, file[1], file[2])
	}
	o := pergola(t, "validate", filepath.Join(dir, "landscape"))
	assert.Equal(t, 0, o.code, "%s%s", o.stdout, o.stderr)
	assert.Contains(t, o.stdout, "[landscape/secret-not-encrypted]")
	assert.Equal(t, 1, strings.Count(o.stdout, "warning:"), o.stdout)
	o = pergola(t, "render", filepath.Join(dir, "landscape"), "--output-dir", filepath.Join(t.TempDir(), "out"))
	assert.Equal(t, 0, o.code, o.stderr)
}
