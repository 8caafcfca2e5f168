// SPDX-License-Identifier: Apache-2.0

package why

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pergola-dev/pergola/change"
	"github.com/pergola-dev/pergola/components"
	"github.com/pergola-dev/pergola/render"
)

// TestLikelyComponents: for every object of the demonstration landscape, the likely components
// contain all of its components.
func TestLikelyComponents(t *testing.T) {
	now := time.Unix(1_780_000_000, 0)
	l := writeDemoLandscape(t, nil)
	opts, err := render.LandscapeOptions(components.FS, l, render.WithTime(now))
	require.NoError(t, err)
	inputs, err := render.Owners(l, render.WithTime(now))
	require.NoError(t, err)
	results, errs := render.RenderEach(inputs, opts)
	makers := map[change.Ref][]string{}
	for i, result := range results {
		require.NoError(t, errs[i])
		for _, b := range result.Bundles {
			for _, o := range b.Objects {
				ref := change.RefOf(o.Unstructured)
				makers[ref] = append(makers[ref], b.Component)
			}
		}
	}
	quick := 0
	for ref, all := range makers {
		rest := ref.Name
		if ref.Namespace != "" {
			rest = ref.Namespace + "/" + ref.Name
		}
		e := explainer{opts: Options{Catalogue: components.FS}, question: question{nameAndPath: rest}}
		likely := e.likelyComponents()
		found := slices.DeleteFunc(slices.Clone(all), func(c string) bool { return !slices.Contains(likely, c) })
		if len(found) > 0 {
			quick++
			assert.Equal(t, all, found, "%s: of those that make it, some are not asked", ref)
		}
	}
	assert.Greater(t, quick, len(makers)/3, "it is worth it")
}
