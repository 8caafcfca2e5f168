// SPDX-License-Identifier: Apache-2.0

package main

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestWithoutTheRuntimeCluster: if the runtime cluster is not reachable, access that is derived
// from it is not a second error.
func TestWithoutTheRuntimeCluster(t *testing.T) {
	dir := t.TempDir()
	smallLandscape(t, dir)
	t.Setenv("KUBECONFIG", filepath.Join(dir, "none"))
	replaceIn(t, dir, "landscape.yaml", "spec:\n", "spec:\n  clusters:\n    runtime: {context: somewhere}\n")
	o := pergola(t, "apply", dir, "--dry-run")
	assert.Equal(t, 2, o.code)
	assert.Contains(t, o.stderr, `cluster runtime: context "somewhere" is wanted, but `)
	assert.NotContains(t, o.stderr, "cluster virtual")
	replaceIn(t, dir, "landscape.yaml", "    runtime: {context: somewhere}\n", "    runtime: {context: somewhere}\n    virtual: {context: elsewhere}\n")
	o = pergola(t, "apply", dir, "--dry-run")
	assert.Contains(t, o.stderr, `cluster virtual: context "elsewhere" is wanted, but `)
}
