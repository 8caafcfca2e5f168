// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pergola-dev/pergola/components"
	"github.com/pergola-dev/pergola/landscapes"
	"github.com/pergola-dev/pergola/render"
	"github.com/pergola-dev/pergola/schemas"
)

const localLandscape = "../../../landscapes/local"

// TestRenderFloor checks that the floor reads components in their current form, as rendering does.
func TestRenderFloor(t *testing.T) {
	for _, dir := range []string{localLandscape, "../garden"} {
		took, err := renderFloor(t.Context(), arguments{dir: dir})
		require.NoError(t, err, dir)
		assert.Len(t, took.Parts, 3)
	}
}

// TestGardenWithAllOptions checks that the Garden has all components that do not exclude each
// other.
func TestGardenWithAllOptions(t *testing.T) {
	l, violations, err := landscapes.Load(t.Context(), "../garden", landscapes.Options{})
	require.NoError(t, err)
	found, err := l.Validate(t.Context(), schemas.Options{})
	require.NoError(t, err)
	for _, v := range append(violations, found...) {
		assert.NotEqual(t, schemas.SeverityError, v.Severity, v)
	}
	inputs, err := render.Owners(l)
	require.NoError(t, err)
	require.Len(t, inputs, 1)
	options, err := render.LandscapeOptions(components.FS, l, render.WithPassedRules())
	require.NoError(t, err)
	result, err := render.Render(inputs[0], options)
	require.NoError(t, err)
	var off []string
	for _, c := range result.Components {
		if !c.Enabled {
			off = append(off, c.Path)
		}
	}
	// The extension component needs charts of extensions, and benchmarks use no registry.
	assert.Equal(t, []string{"garden/extensions", "garden/gardener-apiserver"}, off)
}

func TestObjectSet(t *testing.T) {
	set, err := arguments{namespace: "bench", objects: 10}.objectSet()
	require.NoError(t, err)
	require.Len(t, set.Objects, 10)
	seen := map[string]bool{}
	for _, o := range set.Objects {
		assert.Equal(t, "bench", o.GetNamespace())
		assert.Contains(t, resources(), o.GetKind())
		assert.False(t, seen[o.GetName()], o.GetName())
		seen[o.GetName()] = true
	}
}
