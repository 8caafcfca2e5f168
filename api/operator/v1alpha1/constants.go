// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"

// Condition types of a Garden.
const (
	// VirtualGardenAPIServerAvailable reports whether the API server of the virtual cluster
	// answers.
	VirtualGardenAPIServerAvailable gardencorev1beta1.ConditionType = "VirtualGardenAPIServerAvailable"
	// RuntimeComponentsHealthy reports whether components of the runtime cluster are healthy.
	RuntimeComponentsHealthy gardencorev1beta1.ConditionType = "RuntimeComponentsHealthy"
	// VirtualComponentsHealthy reports whether components of the virtual cluster are healthy.
	VirtualComponentsHealthy gardencorev1beta1.ConditionType = "VirtualComponentsHealthy"
	// ObservabilityComponentsHealthy reports whether monitoring and logging are healthy.
	ObservabilityComponentsHealthy = gardencorev1beta1.ObservabilityComponentsHealthy
)

const (
	// AdvertisedAddressVirtualGarden is the name of the address of the virtual cluster's API
	// server.
	AdvertisedAddressVirtualGarden = "virtual-garden"
	// SecretManagerIdentityOperator is the identity that marks Secrets created by the operator.
	SecretManagerIdentityOperator = "gardener-operator"
)

// LabelAutoUpdateGardenlet with the value `true` on a Gardenlet makes the operator update its chart
// to the version of the garden.
const LabelAutoUpdateGardenlet = "operator.gardener.cloud/auto-update-gardenlet-helm-chart-ref"
