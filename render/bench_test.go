// SPDX-License-Identifier: Apache-2.0

package render_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pergola-dev/pergola/components"
	"github.com/pergola-dev/pergola/landscapes"
	"github.com/pergola-dev/pergola/render"
)

// BenchmarkRenderLocal renders every owner of the local landscape.
func BenchmarkRenderLocal(b *testing.B) {
	l, _, err := landscapes.Load(b.Context(), "../landscapes/local", landscapes.Options{})
	require.NoError(b, err)
	for b.Loop() {
		bundles, err := render.All(l, components.FS, nil)
		require.NoError(b, err)
		require.NotEmpty(b, bundles)
	}
}
