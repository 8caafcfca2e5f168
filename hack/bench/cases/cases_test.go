package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const local = "../../../landscapes/local"

// The floor reads components as rendering does: a change of their form must reach it.
func TestRenderFloor(t *testing.T) {
	took, err := renderFloor(t.Context(), arguments{dir: local})
	require.NoError(t, err)
	assert.Len(t, took.Parts, 3)
}

func TestSet(t *testing.T) {
	set, err := arguments{namespace: "bench", objects: 10}.set()
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
