// SPDX-License-Identifier: Apache-2.0

package landscapes

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestFolders: concurrent reads reach more folders than stay open, but nothing outside the root.
func TestFolders(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(outside, "secret"), []byte("outside"), 0o600))
	for i := range 3 * maxOpenFolders {
		folder := filepath.Join(dir, fmt.Sprint(i), "deep")
		require.NoError(t, os.MkdirAll(folder, 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(folder, "file"), fmt.Append(nil, i), 0o600))
	}
	require.NoError(t, os.Symlink(filepath.Join(outside, "secret"), filepath.Join(dir, "0", "deep", "link")))
	require.NoError(t, os.Symlink(outside, filepath.Join(dir, "away")))
	require.NoError(t, os.Symlink("../../1/deep/file", filepath.Join(dir, "0", "deep", "other")))
	root, err := os.OpenRoot(dir)
	require.NoError(t, err)
	defer root.Close()
	files := newFolderCache(root)

	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for i := range 3 * maxOpenFolders {
				file, err := files.Open(fmt.Sprintf("%d/deep/file", i))
				if !assert.NoError(t, err) {
					return
				}
				content := make([]byte, 8)
				n, _ := file.Read(content)
				assert.Equal(t, fmt.Sprint(i), string(content[:n]))
				assert.NoError(t, file.Close())
			}
		})
	}
	group.Wait()

	for _, name := range []string{"0/deep/link", "away/secret", "0/deep/none", "none/file", "../file", "/0/deep/file"} {
		_, err := files.Open(name)
		assert.Error(t, err, name)
	}
	data, err := fs.ReadFile(files, "0/deep/other")
	require.NoError(t, err)
	assert.Equal(t, "1", string(data), "a link to another folder inside")
}
