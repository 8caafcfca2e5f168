// SPDX-License-Identifier: Apache-2.0

package rendercache

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pergola-dev/pergola/components"
	"github.com/pergola-dev/pergola/landscapes"
	"github.com/pergola-dev/pergola/render"
	"github.com/pergola-dev/pergola/schemas"
)

// TestUnchangedInputIsNotRenderedAgain checks that only a changed input is rendered again.
func TestUnchangedInputIsNotRenderedAgain(t *testing.T) {
	l, violations, err := landscapes.Load(t.Context(), "../../../landscapes/local", landscapes.Options{})
	require.NoError(t, err)
	require.False(t, schemas.HasErrors(violations))
	options, err := render.LandscapeOptions(components.FS, l)
	require.NoError(t, err)
	inputs, err := render.Owners(l, render.WithOwnerKinds("garden"))
	require.NoError(t, err)
	require.Len(t, inputs, 1)
	in := inputs[0]
	kept := &Cache{}
	first, err := kept.Render(in, options)
	require.NoError(t, err)
	fresh, err := render.Render(in, options)
	require.NoError(t, err)
	require.NotEmpty(t, fresh.Bundles)
	require.Len(t, first.Bundles, len(fresh.Bundles))

	second, err := kept.Render(in, options)
	require.NoError(t, err)
	assert.Same(t, first.Bundles[0].Objects[0].Unstructured, second.Bundles[0].Objects[0].Unstructured, "it was rendered again")
	second.Bundles[0].Name = "replaced"
	third, err := kept.Render(in, options)
	require.NoError(t, err)
	assert.Equal(t, first.Bundles[0].Name, third.Bundles[0].Name, "a bundle that is replaced is one of that reconciliation")

	options.OnlyComponents = []string{first.Bundles[0].Component}
	less, err := kept.Render(in, options)
	require.NoError(t, err)
	assert.Less(t, len(less.Bundles), len(first.Bundles), "other options are another render")
	options.OnlyComponents = nil
	in.Facts.Addresses = map[string]string{"new": "10.0.0.1"}
	changed, err := kept.Render(in, options)
	require.NoError(t, err)
	assert.NotSame(t, first.Bundles[0].Objects[0].Unstructured, changed.Bundles[0].Objects[0].Unstructured, "other facts are another render")

	in.TargetVersion = "no version"
	_, err = kept.Render(in, options)
	require.Error(t, err)
	_, err = kept.Render(in, options)
	require.Error(t, err, "errors are not kept")
}
