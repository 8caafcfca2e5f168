// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"testing"

	"github.com/stretchr/testify/assert"

	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/landscapes"
)

// TestHintsOfADiffReachTheCluster: commands in hints have the flags for the cluster's access.
func TestHintsOfADiffReachTheCluster(t *testing.T) {
	l := &landscapes.Landscape{Config: &landscapev1alpha1.Landscape{}}
	const hint = "for that: kubectl annotate x"
	assert.Equal(t, "for that, on cluster virtual: kubectl annotate x", withClusterAccess(l, "Seed", hint))
	l.Config.Spec.Clusters = &landscapev1alpha1.Clusters{Runtime: &landscapev1alpha1.ClusterAccess{Context: "r"}, Virtual: &landscapev1alpha1.ClusterAccess{Context: "v"}}
	assert.Equal(t, "for that: kubectl --context v annotate x", withClusterAccess(l, "Seed", hint))
	assert.Equal(t, "for that: kubectl --context r annotate x", withClusterAccess(l, "Garden", hint))
}
