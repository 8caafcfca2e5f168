// SPDX-License-Identifier: Apache-2.0

package crosscheck

import (
	"reflect"
	"strings"

	"github.com/pergola-dev/pergola/schemas"
)

// checkGardenAutoscaler checks that a Seed in a Garden's runtime cluster uses the Garden's setting
// for the vertical pod autoscaler. Source: pkg/gardenlet/controller/seed/seed (SkipIf:
// seedIsGarden).
func checkGardenAutoscaler(spec string) func(*checker) {
	return func(c *checker) {
		seed := mapAt(c.object(), strings.Split(spec, ".")...)
		if seed == nil {
			return
		}
		for _, in := range c.allOfKind(kindGarden) {
			garden := in.Content().Object
			const setting = "settings.verticalPodAutoscaler.enabled"
			const gardens = "spec.runtimeCluster." + setting
			// A Garden without the setting deploys no autoscaler (upstream: vpaEnabled in
			// pkg/operator/controller/garden/garden); with it the default is true.
			ofGarden := mapAt(garden, "spec", "runtimeCluster", "settings", "verticalPodAutoscaler") != nil && valueAt(garden, strings.Split(gardens, ".")...) != false
			ofSeed := valueAt(seed, strings.Split(setting, ".")...) != false
			if ofGarden == ofSeed || !c.isInRuntimeCluster(seed, garden) {
				continue
			}
			field, where := spec+"."+setting, fieldPosition(in, gardens)
			if ofSeed {
				c.report(field, schemas.TypeInvalid,
					"is not false, but the Garden in this cluster installs no autoscaler; set it to false, or to true in %s", where)
			} else {
				c.report(field, schemas.TypeInvalid,
					"is false, but the Garden in this cluster installs the autoscaler; set it to true, or to false in %s", where)
			}
		}
	}
}

// isInRuntimeCluster reports whether the Seed runs in the runtime cluster of a Garden. It compares
// the connections in landscape.yaml, or else the networks: two clusters do not share all of them.
func (c *checker) isInRuntimeCluster(seed, garden map[string]any) bool {
	for _, in := range c.allOfKind(kindLandscape) {
		landscape := in.Content().Object
		runtime, own := valueAt(landscape, "spec", "clusters", "runtime"), valueAt(landscape, "spec", "clusters", "seeds", c.name())
		if runtime != nil && own != nil {
			return reflect.DeepEqual(runtime, own)
		}
	}
	return hasSameRanges(readNetworks(seed, "networks.nodes", "networks.pods", "networks.services"), runtimeNetworks(garden))
}
