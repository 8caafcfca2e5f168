// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"context"

	admissionv1 "k8s.io/api/admission/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
)

// hintEndpoints makes clients use endpoints in their own zone. Upstream's HEAD relies on
// trafficDistribution instead, but landscapes still have the label on EndpointSlices.
func hintEndpoints(_ context.Context, _ *admissionv1.AdmissionRequest, slice *discoveryv1.EndpointSlice) error {
	for i := range slice.Endpoints {
		if zone := slice.Endpoints[i].Zone; zone != nil && *zone != "" {
			slice.Endpoints[i].Hints = &discoveryv1.EndpointHints{ForZones: []discoveryv1.ForZone{{Name: *zone}}}
		}
	}
	return nil
}
