// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pergola-dev/pergola/hack/chartregistry"
)

// TestValidateAsksNoRegistry: validate neither pulls the charts of a landscape nor depends on them;
// render pulls them.
func TestValidateAsksNoRegistry(t *testing.T) {
	r := chartregistry.New(t)
	dir := t.TempDir()
	require.NoError(t, os.CopyFS(dir, os.DirFS(filepath.Join("..", "..", "landscapes", "local"))))
	for _, name := range []string{"golden", "projects", "seeds"} {
		require.NoError(t, os.RemoveAll(filepath.Join(dir, name)))
	}
	writeFile(t, dir, "garden/watcher.yaml", fmt.Sprintf(`apiVersion: operator.gardener.cloud/v1alpha1
kind: Extension
metadata: {name: watcher}
spec:
  resources:
  - {kind: Extension, type: watcher}
  - {kind: DNSRecord, type: local}
  - {kind: BackupBucket, type: local}
  deployment:
    extension:
      helm: {ociRepository: {ref: "%[1]s/charts/watcher:v1"}}
    admission:
      virtualCluster: {helm: {ociRepository: {ref: "%[1]s/charts/watcher:v1"}}}
---
apiVersion: seedmanagement.gardener.cloud/v1alpha1
kind: Gardenlet
metadata: {name: another}
spec:
  deployment: {helm: {ociRepository: {ref: "%[1]s/charts/gardenlet:v1"}}}
`, r.Host()))
	o := pergola(t, "validate", dir)
	assert.Equal(t, 0, o.code, "%+v", o)
	assert.Zero(t, r.RequestCount.Load())
	o = pergola(t, "render", dir, "--component", "extension-admission-virtual-watcher")
	assert.NotZero(t, o.code)
	assert.Contains(t, o.stderr, "charts/watcher:v1 cannot be pulled")
}
