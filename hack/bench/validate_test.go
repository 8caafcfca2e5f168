// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestCache: a pergola without a cache gets no flag; with a cache, it is empty at first.
func TestCache(t *testing.T) {
	dir := t.TempDir()
	program := func(name, help string) settings {
		file := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(file, []byte("#!/bin/sh\n[ \"$*\" = \"validate --help\" ] && echo \""+help+"\"\n"), 0o755))
		return settings{pergola: file, work: dir}
	}
	l := &landscape{dir: "landscape"}

	s := program("without", "  --strict   make errors of warnings")
	c, err := newCache(t.Context(), s)
	require.NoError(t, err)
	assert.Equal(t, []string{s.pergola, "validate", "landscape"}, c.validate(s, l))
	require.NoError(t, c.clear(t.Context()))

	s = program("with", "  --cache-dir string   folder of results")
	c, err = newCache(t.Context(), s)
	require.NoError(t, err)
	assert.Equal(t, []string{s.pergola, "validate", "landscape", "--cache-dir", c.dir}, c.validate(s, l))
	for range 2 {
		require.NoError(t, c.clear(t.Context()))
		files, err := os.ReadDir(c.dir)
		require.NoError(t, err)
		assert.Empty(t, files)
		require.NoError(t, os.WriteFile(filepath.Join(c.dir, "result"), nil, 0o600))
	}

	_, err = newCache(t.Context(), settings{pergola: filepath.Join(dir, "none")})
	assert.Error(t, err)
}
