// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestCacheDoesNotChangeResults: cached results do not change the output of the next run.
func TestCacheDoesNotChangeResults(t *testing.T) {
	dir, cache := t.TempDir(), t.TempDir()
	smallLandscape(t, dir)
	same := func(what string) {
		t.Helper()
		fresh := pergola(t, "validate", dir, "--no-cache", "-o", "json")
		for range 2 {
			assert.Equal(t, fresh, pergola(t, "validate", dir, "--cache-dir", cache, "-o", "json"), what)
		}
	}
	same("as it is")
	replaceIn(t, dir, "seed.yaml", "type: local", "type: Local_")
	same("with a fault")
	replaceIn(t, dir, "seed.yaml", "apiVersion:", "# moved\napiVersion:")
	same("in another line")
	replaceIn(t, dir, "seed.yaml", "type: Local_", "type: local")
	same("mended")
	found, err := filepath.Glob(filepath.Join(cache, "validate", "*.kept"))
	require.NoError(t, err)
	assert.Len(t, found, 1)
}

// TestNoCache: --no-cache writes nothing, and an unusable folder is reported only if a flag
// names it.
func TestNoCache(t *testing.T) {
	dir, cache := t.TempDir(), t.TempDir()
	smallLandscape(t, dir)
	assert.Zero(t, pergola(t, "validate", dir, "--no-cache", "--cache-dir", cache).code)
	left, err := os.ReadDir(cache)
	require.NoError(t, err)
	assert.Empty(t, left)

	file := filepath.Join(cache, "file")
	writeFile(t, cache, "file", "")
	out := pergola(t, "validate", dir, "--cache-dir", file)
	assert.Zero(t, out.code)
	assert.Contains(t, out.stderr, "Warning: saving results of validation")
	t.Setenv(envCacheDir, file)
	out = pergola(t, "validate", dir)
	assert.Zero(t, out.code)
	assert.NotContains(t, out.stderr, "Warning: ", "nobody asked on the command line")
}

// TestCacheHasNoSecrets: cache files contain no values of Secrets, neither plain nor encrypted
// ones.
func TestCacheHasNoSecrets(t *testing.T) {
	key, err := filepath.Abs(filepath.Join("..", "..", "landscapes", "local", ".sops", "age.key"))
	require.NoError(t, err)
	t.Setenv("SOPS_AGE_KEY_FILE", key)
	dir, cache := t.TempDir(), t.TempDir()
	smallLandscape(t, dir)
	writeFile(t, dir, "plain.yaml", "apiVersion: v1\nkind: Secret\nmetadata: {name: plain, namespace: garden}\nimmutable: maybe-hunter2\nstringData: {a: hunter2, b: 7}\n")
	writeFile(t, dir, "wrong.yaml", "apiVersion: v1\nkind: Secret\nmetadata: {name: wrong, namespace: garden}\ndata: {a: hunter2}\nhunter2: true\n")
	out := pergola(t, "validate", dir, "--cache-dir", cache)
	require.NotEmpty(t, out.stdout)
	secrets := [][]byte{[]byte("hunter2")}
	for _, file := range []string{"garden/secrets.yaml", "seeds/secrets.yaml"} {
		for _, line := range strings.Split(readDemoFile(t, file), "\n") {
			if _, sealed, ok := strings.Cut(line, "ENC["); ok {
				secrets = append(secrets, []byte(sealed))
			}
		}
	}
	require.NoError(t, filepath.WalkDir(cache, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		for _, secret := range secrets {
			assert.False(t, bytes.Contains(data, secret), "%s", secret)
		}
		return err
	}))
}

// TestCacheNameOfStagedCopy: a hook validates staged files in a new folder each time.
func TestCacheNameOfStagedCopy(t *testing.T) {
	root, staged, other := t.TempDir(), t.TempDir(), t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(root, ".git"), 0o755))
	writeFile(t, staged, ".git", "gitdir: "+filepath.Join(root, ".git")+"\n")
	names := map[string]string{}
	for _, dir := range []string{root, staged, other} {
		name, err := landscapeName(filepath.Join(dir, "landscape"))
		require.NoError(t, err)
		names[dir] = name
	}
	assert.Equal(t, names[root], names[staged])
	assert.NotEqual(t, names[root], names[other])
}
