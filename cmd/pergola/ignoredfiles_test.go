// SPDX-License-Identifier: Apache-2.0

package main

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestIgnoredFiles: validate warns about a file that git ignores, unless it is committed.
func TestIgnoredFiles(t *testing.T) {
	dir, commit := repository(t)
	writeFile(t, dir, ".gitignore", "more*.yaml\n")
	writeFile(t, dir, "more.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: garden-local}\n")
	o := pergola(t, "validate", dir)
	assert.Equal(t, 0, o.code)
	assert.Contains(t, o.stdout, filepath.Join(dir, "more.yaml")+":1:1: warning: git ignores the file (.gitignore or .git/info/exclude), so clones and operators lack it; ")
	assert.Contains(t, o.stdout, "[landscape/ignored]")

	writeFile(t, dir, ".gitignore", "other.yaml\n")
	commit()
	writeFile(t, dir, ".gitignore", "more*.yaml\n")
	assert.NotContains(t, pergola(t, "validate", dir).stdout, "landscape/ignored", "it is committed")
}
