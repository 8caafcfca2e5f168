// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestDiffIsTheSameWhateverIsKnown: cached results of earlier runs and of this process do not
// change a diff.
func TestDiffIsTheSameWhateverIsKnown(t *testing.T) {
	f := newFleet(t)
	t.Chdir(f.root)
	f.replaceInFiles(t, "eventTTL: 1h", "eventTTL: 2h", "base/garden/garden.yaml")
	f.replaceInFiles(t, "version: 1.34.1\n    kubeAPIServer", "version: 1.35.0\n    kubeAPIServer", webShootFile)
	f.replaceInFiles(t, "    - \"0\"\n", "    - \"0\"\n    - \"1\"\n", "base/seeds/local.yaml")
	f.commit(t)
	cache := t.TempDir()
	diff := func(args ...string) string {
		t.Helper()
		o := pergola(t, append([]string{"diff", "dev", "--from", "HEAD~1", "--to", "HEAD", "-o", "json"}, args...)...)
		require.Equal(t, 1, o.code, "%+v", o)
		return o.stdout
	}
	want := diff("--no-cache")
	for _, seen := range []string{"kube-apiserver", "high-availability-config.resources.gardener.cloud/zones", "Kubernetes 1.34"} {
		assert.Contains(t, want, seen)
	}
	assert.Equal(t, want, diff("--cache-dir", cache), "cold")
	assert.Equal(t, want, diff("--cache-dir", cache), "warm")

	// Later changes are found with a warm cache, too.
	f.replaceInFiles(t, "eventTTL: 2h", "eventTTL: 3h", "base/garden/garden.yaml")
	f.commit(t)
	want = diff("--no-cache")
	assert.Contains(t, want, "--event-ttl=3h")
	assert.Equal(t, want, diff("--cache-dir", cache))
}
