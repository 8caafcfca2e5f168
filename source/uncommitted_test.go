// SPDX-License-Identifier: Apache-2.0

package source

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestUncommitted(t *testing.T) {
	dir, repo := repository(t)
	write(t, dir, "land/a.yaml", "one")
	write(t, dir, "land/deep/b.yaml", "two")
	write(t, dir, "land/.sops.yaml", "rule")
	write(t, dir, "other/c.yaml", "three")
	r, err := Open(dir)
	require.NoError(t, err)

	commitOf, files, err := r.Uncommitted("land")
	require.NoError(t, err)
	assert.Empty(t, commitOf, "nothing is committed yet")
	assert.Equal(t, []string{"land/a.yaml", "land/deep/b.yaml"}, files)

	first := commit(t, repo, "first")
	commitOf, files, err = r.Uncommitted("land", "land/deep", ".")
	require.NoError(t, err)
	assert.Equal(t, first, commitOf)
	assert.Empty(t, files)

	// changed, of the same length
	write(t, dir, "land/a.yaml", "owe")
	require.NoError(t, os.Remove(filepath.Join(dir, "land/deep/b.yaml"))) // deleted
	write(t, dir, "land/deep/new.yaml", "new")
	write(t, dir, "land/.sops.yaml", "another rule")
	write(t, dir, "land/.hidden", "x")
	write(t, dir, "land/.key/age.key", "x")
	write(t, dir, "other/c.yaml", "changed")
	_, files, err = r.Uncommitted("land", "nowhere")
	require.NoError(t, err)
	assert.Equal(t, []string{"land/.sops.yaml", "land/a.yaml", "land/deep/b.yaml", "land/deep/new.yaml"}, files)
	_, files, err = r.Uncommitted(".")
	require.NoError(t, err)
	assert.Len(t, files, 5)
}
