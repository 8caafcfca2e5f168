// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/pergola-dev/pergola/apply"
)

// TestSetSeedNames: inventories have the role of a cluster; people look for its name.
func TestSetSeedNames(t *testing.T) {
	bundles := func(clusters ...string) (out []TreeBundle) {
		for _, c := range clusters {
			out = append(out, TreeBundle{Name: "b", Cluster: c})
		}
		return out
	}
	owners := []TreeOwner{{Owner: "garden.g", Bundles: bundles("runtime", "virtual")}, {Owner: "seed.one", Bundles: bundles("seed")}, {Owner: "shoot.garden-a.b", Bundles: bundles("seed")}}
	setSeedNames(owners)
	assert.Equal(t, []TreeOwner{{Owner: "garden.g", Bundles: bundles("runtime", "virtual")}, {Owner: "seed.one", Bundles: bundles("one")}, {Owner: "shoot.garden-a.b", Bundles: bundles("one")}}, owners)
	unknown := []TreeOwner{{Owner: "shoot.garden-a.b", Bundles: bundles("seed")}}
	setSeedNames(unknown)
	assert.Equal(t, "seed", unknown[0].Bundles[0].Cluster)
}

// TestMarkShared: an object that two landscapes declare is shown with its actual owner.
func TestMarkShared(t *testing.T) {
	object := func(name, applied string, leaving bool) TreeObject {
		return TreeObject{Object: name, IsTerminating: leaving, inventoryEntry: apply.Entry{Ref: apply.Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: "a", Name: name}, AppliedDigest: applied}}
	}
	of := func(owner, cluster string, objects ...TreeObject) TreeOwner {
		return TreeOwner{Owner: owner, Bundles: []TreeBundle{{Cluster: cluster, Objects: objects}}}
	}
	owners := []TreeOwner{
		of("landscape.one", "runtime", object("both", "x", false), object("new", "", false), object("moved", "x", false), object("nobody", "", false), object("leaves", "", true)),
		of("landscape.two", "runtime", object("both", "", false), object("moved", "x", false), object("nobody", "", false), object("leaves", "", false)),
		of("landscape.three", "virtual", object("both", "", false)),
	}
	markShared(owners)
	said := map[string][]string{}
	for _, o := range owners {
		for _, shown := range o.Bundles[0].Objects {
			if whose := append(shown.OtherOwners, shown.OwnedBy); len(whose) > 1 || whose[0] != "" {
				said[o.Owner+" "+shown.Object] = whose
			}
		}
	}
	assert.Equal(t, map[string][]string{
		"landscape.two both": {"landscape.one"}, "landscape.two leaves": {"landscape.one"},
		"landscape.one moved": {"landscape.two", ""}, "landscape.two moved": {"landscape.one", ""},
	}, said, "not one that is new, and not one of another cluster")
}
