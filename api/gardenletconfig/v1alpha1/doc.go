// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 holds the GardenletConfiguration of gardenlet.config.gardener.cloud/v1alpha1,
// which Gardenlets, ManagedSeeds and ManagedSeedSets contain. The wire format is upstream's, field
// by field; the documentation is ours. Rules are in package schemas, which also lists the fields
// that no gardenlet reads.
package v1alpha1

// APIVersion and Kind of a configuration.
const (
	APIVersion = "gardenlet.config.gardener.cloud/v1alpha1"
	Kind       = "GardenletConfiguration"
)
