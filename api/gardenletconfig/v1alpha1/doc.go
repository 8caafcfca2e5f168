// Package v1alpha1 holds the GardenletConfiguration of gardenlet.config.gardener.cloud/v1alpha1, which Gardenlets, ManagedSeeds and
// ManagedSeedSets carry. The wire format is upstream's, field by field; documentation is ours. Rules live in package schemas, which also
// says what of a configuration no gardenlet reads.
package v1alpha1

// APIVersion and Kind of a configuration.
const (
	APIVersion = "gardenlet.config.gardener.cloud/v1alpha1"
	Kind       = "GardenletConfiguration"
)
