package across

import (
	"strings"

	"github.com/pergola-dev/pergola/schemas"
)

const ingressConfig = "spec.runtimeCluster.ingress.controller.providerConfig"

// ingressConfigUnused reports ingress controller configuration if landscape.yaml disables the
// controller.
func (c *check) ingressConfigUnused() {
	if at(c.object(), strings.Split(ingressConfig, ".")...) == nil {
		return
	}
	for _, in := range c.all(kindLandscape) {
		const gate = "spec.featureGates.DisableNginxIngressInGarden"
		if at(in.Content().Object, strings.Split(gate, ".")...) != false {
			c.report(ingressConfig, schemas.TypeInvalid,
				"has no effect: no ingress controller runs in the runtime cluster, as the feature gate DisableNginxIngressInGarden is on; set the gate to false in %s, or leave this out", placeOf(in, gate))
		}
	}
}
