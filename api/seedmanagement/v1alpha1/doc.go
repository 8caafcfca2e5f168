// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 holds Gardenlet, ManagedSeed and ManagedSeedSet of
// seedmanagement.gardener.cloud/v1alpha1, which turn clusters into Seeds. The wire format is
// upstream's, field by field; the documentation is ours. Rules are in package schemas.
//
// +kubebuilder:object:generate=true
// +groupName=seedmanagement.gardener.cloud
package v1alpha1
