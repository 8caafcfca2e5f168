package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pergola-dev/pergola/landscapes"
	"github.com/pergola-dev/pergola/schemas"
)

// The landscape that is measured has to be valid: an error would end the bench after minutes.
func TestLandscapeIsValid(t *testing.T) {
	dir, files, err := writeLandscape(settings{repository: "../..", work: t.TempDir(), shoots: 3})
	require.NoError(t, err)
	assert.Len(t, files, 3)
	l, violations, err := landscapes.Load(t.Context(), dir, landscapes.Options{})
	require.NoError(t, err)
	require.Empty(t, violations)
	found, err := l.Validate(t.Context(), schemas.Options{})
	require.NoError(t, err)
	assert.Empty(t, found)
}
