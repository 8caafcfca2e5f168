// Package v1alpha1 holds Gardenlet, ManagedSeed and ManagedSeedSet of seedmanagement.gardener.cloud/v1alpha1: how
// clusters become Seeds. The wire format is upstream's, field by field; documentation is ours. Rules live in package
// schemas.
//
// +kubebuilder:object:generate=true
// +groupName=seedmanagement.gardener.cloud
package v1alpha1
