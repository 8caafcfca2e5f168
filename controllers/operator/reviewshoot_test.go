// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pergola-dev/pergola/change"
	"github.com/pergola-dev/pergola/components"
	"github.com/pergola-dev/pergola/controllers/permit"
	"github.com/pergola-dev/pergola/landscapes"
)

// TestShootLossesAreReviewedOnSeed: losses inside a Shoot are for the gardenlet of its seed.
func TestShootLossesAreReviewedOnSeed(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.CopyFS(dir, os.DirFS("../../landscapes/local")))
	load := func() *landscapes.Landscape {
		t.Helper()
		l, violations, err := landscapes.Load(t.Context(), dir, landscapes.Options{})
		require.NoError(t, err)
		require.Empty(t, violations)
		return l
	}
	former := load()
	overlay := filepath.Join(dir, "components/shoot/kube-scheduler/kustomization.yaml")
	require.NoError(t, os.MkdirAll(filepath.Dir(overlay), 0o755))
	require.NoError(t, os.WriteFile(overlay, []byte(`patches:
- patch: |
    apiVersion: rbac.authorization.k8s.io/v1
    kind: ClusterRoleBinding
    metadata: {name: "gardener.cloud:target:kube-scheduler"}
    $patch: delete
`), 0o600))
	r := &revisionReader{catalogue: components.FS, now: time.Now()}
	out := permit.NewReview("test", change.Plan{})
	require.NoError(t, r.compareWithBase(t.Context(), former, &revision{landscape: load()}, out))
	assert.Empty(t, out.ForSeed("other").LostObjects)
	var lost []string
	for object, owners := range out.ForSeed("local").LostObjects {
		for owner := range owners {
			lost = append(lost, owner+": "+object)
		}
	}
	assert.Len(t, lost, 1)
	assert.Contains(t, strings.Join(lost, " "), "shoot garden-local/local: rbac.authorization.k8s.io/ClusterRoleBinding gardener.cloud:target:kube-scheduler")
}
