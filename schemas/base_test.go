// SPDX-License-Identifier: Apache-2.0

package schemas

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestBaseIsCurrent checks that base holds exactly the files that the generator writes now.
func TestBaseIsCurrent(t *testing.T) {
	kinds, err := StructuralKinds()
	require.NoError(t, err)
	require.Len(t, kinds, len(checkedKinds()), "every checked kind has a definition in api/crds")
	wanted := map[string]bool{"doc.cue": true}
	for _, kind := range kinds {
		name := BaseFile(kind.GVK)
		wanted[name] = true
		source, err := kind.CUE()
		require.NoError(t, err)
		file, err := os.ReadFile(filepath.Join("base", name))
		require.NoError(t, err)
		assert.Equal(t, string(source), string(file), "%s is not current; run `make generate`", name)
	}
	entries, err := os.ReadDir("base")
	require.NoError(t, err)
	for _, entry := range entries {
		assert.True(t, wanted[entry.Name()], "%s belongs to no kind; run `make generate`", entry.Name())
	}
}
