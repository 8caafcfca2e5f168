// SPDX-License-Identifier: Apache-2.0

package crosscheck

import (
	"strings"

	"github.com/pergola-dev/pergola/schemas"
)

const ingressConfigPath = "spec.runtimeCluster.ingress.controller.providerConfig"

// checkIngressConfigUsed reports ingress controller configuration if landscape.yaml disables the
// controller.
func (c *checker) checkIngressConfigUsed() {
	if valueAt(c.object(), strings.Split(ingressConfigPath, ".")...) == nil {
		return
	}
	for _, in := range c.allOfKind(kindLandscape) {
		const gate = "spec.featureGates.DisableNginxIngressInGarden"
		if valueAt(in.Content().Object, strings.Split(gate, ".")...) != false {
			c.report(ingressConfigPath, schemas.TypeInvalid,
				"has no effect: the feature gate DisableNginxIngressInGarden turns the ingress controller off; set the gate to false in %s, or leave this out", fieldPosition(in, gate))
		}
	}
}
