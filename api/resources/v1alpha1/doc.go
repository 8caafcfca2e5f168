// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 holds ManagedResource of resources.gardener.cloud/v1alpha1: a set of manifests,
// stored in Secrets, that a resource manager applies to a cluster and watches. The wire format is
// upstream's; optional fields that are additions of Pergola are marked so. The resource manager is
// in packages apply and controllers.
//
// +kubebuilder:object:generate=true
// +groupName=resources.gardener.cloud
package v1alpha1
