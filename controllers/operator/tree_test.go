package operator

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// Inventories have the role of a cluster; people look for its name.
func TestNameSeed(t *testing.T) {
	bundles := func(clusters ...string) (out []TreeBundle) {
		for _, c := range clusters {
			out = append(out, TreeBundle{Name: "b", Cluster: c})
		}
		return out
	}
	owners := []TreeOwner{{Owner: "garden.g", Bundles: bundles("runtime", "virtual")}, {Owner: "seed.one", Bundles: bundles("seed")}, {Owner: "shoot.garden-a.b", Bundles: bundles("seed")}}
	nameSeed(owners)
	assert.Equal(t, []TreeOwner{{Owner: "garden.g", Bundles: bundles("runtime", "virtual")}, {Owner: "seed.one", Bundles: bundles("one")}, {Owner: "shoot.garden-a.b", Bundles: bundles("one")}}, owners)
	unknown := []TreeOwner{{Owner: "shoot.garden-a.b", Bundles: bundles("seed")}}
	nameSeed(unknown)
	assert.Equal(t, "seed", unknown[0].Bundles[0].Cluster)
}
