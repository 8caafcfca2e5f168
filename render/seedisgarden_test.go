// SPDX-License-Identifier: Apache-2.0

package render

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/components"
)

// TestSeedInTheGardensCluster: if a Seed runs in the Garden's runtime cluster, no object belongs to
// both, and the Seed has the rest of its objects.
func TestSeedInTheGardensCluster(t *testing.T) {
	rendered := func(clusters landscapev1alpha1.Clusters) (both, ofSeed []string, seen map[string]bool) {
		l := localLandscape(t)
		l.Config.Spec.Clusters = &clusters
		bundles, err := All(l, components.FS, func(o Owner) bool { return o.Kind != "shoot" })
		require.NoError(t, err)
		seen = map[string]bool{}
		for _, b := range bundles { // the Garden comes first
			if b.Cluster == ClusterVirtual {
				continue
			}
			objects := slices.Clone(b.Objects)
			names := []string{"ManagedResource " + b.Name}
			if b.Delivery.Direct {
				names = nil
			}
			for _, o := range objects {
				names = append(names, o.GetKind()+" "+o.GetNamespace()+"/"+o.GetName())
			}
			for _, name := range names {
				if b.Owner.Kind == "garden" {
					seen[name] = true
					continue
				}
				ofSeed = append(ofSeed, name)
				if seen[name] {
					both = append(both, name)
				}
			}
		}
		return both, ofSeed, seen
	}
	runtime, other := landscapev1alpha1.ClusterAccess{Context: "runtime"}, landscapev1alpha1.ClusterAccess{Context: "other"}
	both, all, _ := rendered(landscapev1alpha1.Clusters{Runtime: &runtime, Seeds: map[string]landscapev1alpha1.ClusterAccess{"local": other}})
	assert.Contains(t, both, "ManagedResource etcd-druid", "in a cluster of its own it has all")
	assert.Contains(t, both, "Namespace /garden")
	both, own, ofGarden := rendered(landscapev1alpha1.Clusters{Runtime: &runtime, Seeds: map[string]landscapev1alpha1.ClusterAccess{"local": runtime}})
	assert.Empty(t, both)
	for _, name := range []string{"ManagedResource system", "PriorityClass /gardener-system-critical", "PriorityClass /gardener-system-100"} {
		assert.Contains(t, own, name)
	}
	for _, name := range all {
		if strings.HasPrefix(name, "CustomResourceDefinition ") {
			assert.True(t, ofGarden[name] || slices.Contains(own, name), "%s: Shoots need it on their seed, whoever brings it", name)
		}
	}
}
