// SPDX-License-Identifier: Apache-2.0

package main

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/pergola-dev/pergola/controllers/landscape"
)

// unreachableKubeconfig has one context, of an API server that does not listen.
const unreachableKubeconfig = `apiVersion: v1
kind: Config
clusters:
- name: a
  cluster: {server: "https://127.0.0.1:1"}
contexts:
- name: nowhere
  context: {cluster: a, user: a}
users:
- name: a
`

func TestStatusOfAnInvalidLandscape(t *testing.T) {
	dir := t.TempDir()
	smallLandscape(t, dir)
	writeFile(t, dir, "kubeconfig", unreachableKubeconfig)
	t.Setenv("KUBECONFIG", filepath.Join(dir, "kubeconfig"))
	replaceIn(t, dir, "landscape.yaml", "spec:\n", "spec:\n  clusters: {runtime: {context: nowhere}, virtual: {context: nowhere}}\n  typo: 1\n")
	writeFile(t, dir, "broken.yaml", "a: b: c")

	got := pergola(t, "status", dir)
	assert.Equal(t, 2, got.code, "the cluster does not answer: %s", got.stderr)
	assert.Contains(t, got.stdout, "✗ its files are not valid (see pergola validate "+dir)
	assert.Contains(t, got.stdout, "127.0.0.1:1", "it has asked the cluster")
	assert.Contains(t, got.stderr, "broken.yaml:1:5: error")
	assert.Contains(t, got.stderr, `"typo" does not exist`)

	got = pergola(t, "status", dir, "-o", "json")
	assert.Equal(t, 2, got.code, got.stderr)
	assert.Contains(t, decode[landscape.Status](t, got).Invalid, "not valid")

	writeFile(t, dir, "landscape.yaml", "a: [")
	got = pergola(t, "status", dir)
	assert.Equal(t, 1, got.code)
	assert.Empty(t, got.stdout)
	assert.Contains(t, got.stderr, "Error: the landscape is not valid", "which clusters it has is not known")
}

// TestStatusTakesAFolder: for the name of a Landscape object, the error names the command that
// takes it.
func TestStatusTakesAFolder(t *testing.T) {
	got := pergola(t, "status", "production")
	assert.Equal(t, 2, got.code)
	assert.Contains(t, got.stderr, "run pergola history production\n")
	got = pergola(t, "status", "production", "--context", "runtime")
	assert.Equal(t, 2, got.code)
	assert.Contains(t, got.stderr, "commands about a Landscape in a cluster (pergola history) take --context")
	assert.NotContains(t, pergola(t, "status", "production", "--nonsense").stderr, "history")
}
