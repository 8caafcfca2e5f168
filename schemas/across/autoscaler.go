package across

import (
	"reflect"
	"strings"

	"github.com/pergola-dev/pergola/schemas"
)

// autoscalerOfGarden checks that a Seed in a Garden's runtime cluster uses the Garden's setting for
// the vertical pod autoscaler. Source: pkg/gardenlet/controller/seed/seed (SkipIf: seedIsGarden).
func autoscalerOfGarden(spec string) func(*check) {
	return func(c *check) {
		seed := table(c.object(), strings.Split(spec, ".")...)
		if seed == nil {
			return
		}
		for _, in := range c.all(kindGarden) {
			garden := in.Content().Object
			const setting = "settings.verticalPodAutoscaler.enabled"
			const gardens = "spec.runtimeCluster." + setting
			// A Garden without the setting deploys no autoscaler (upstream: vpaEnabled in
			// pkg/operator/controller/garden/garden); with it the default is true.
			ofGarden := table(garden, "spec", "runtimeCluster", "settings", "verticalPodAutoscaler") != nil && at(garden, strings.Split(gardens, ".")...) != false
			ofSeed := at(seed, strings.Split(setting, ".")...) != false
			if ofGarden == ofSeed || !c.inRuntimeCluster(seed, garden) {
				continue
			}
			field, where := spec+"."+setting, placeOf(in, gardens)
			if ofSeed {
				c.report(field, schemas.TypeInvalid,
					"is on, as it is unless it says false, but the Seed is in the runtime cluster of a Garden that has it off, or does not set it, and there nobody brings the autoscaler for a Seed: set it to false, as it is the cluster that has to have one, or set it to true in %s", where)
			} else {
				c.report(field, schemas.TypeInvalid,
					"is false, but the Seed is in the runtime cluster of a Garden that brings the autoscaler, which is then there for the Seed, too: set it to true; or, where the cluster has one of its own, which would act on the same pods, set it to false in %s", where)
			}
		}
	}
}

// inRuntimeCluster reports whether the Seed runs in the runtime cluster of a Garden. It compares
// the connections in landscape.yaml, or else the networks: two clusters do not share all of them.
func (c *check) inRuntimeCluster(seed, garden map[string]any) bool {
	for _, in := range c.all(kindLandscape) {
		landscape := in.Content().Object
		runtime, own := at(landscape, "spec", "clusters", "runtime"), at(landscape, "spec", "clusters", "seeds", c.name())
		if runtime != nil && own != nil {
			return reflect.DeepEqual(runtime, own)
		}
	}
	return sameRanges(networksAt(seed, "networks.nodes", "networks.pods", "networks.services"), runtimeNetworks(garden))
}
