package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pergola-dev/pergola/landscapes"
	"github.com/pergola-dev/pergola/schemas"
)

const local = "../../../landscapes/local"

// What is measured has to be valid: an error would end the bench after minutes.
func TestShootIsValid(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("..", "shoot.yaml"))
	require.NoError(t, err)
	data = bytes.ReplaceAll(data, []byte("NAME"), []byte("name"))
	declarations, violations, err := landscapes.Parse(t.Context(), "shoot.yaml", data, landscapes.Options{})
	require.NoError(t, err)
	require.Empty(t, violations)
	require.Len(t, declarations, 1)
	found, err := schemas.Validate(t.Context(), []schemas.Input{{Object: declarations[0].Object, Positions: &declarations[0]}}, schemas.Options{})
	require.NoError(t, err)
	assert.Empty(t, found)
}

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
