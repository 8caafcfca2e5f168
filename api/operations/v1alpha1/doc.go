// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 holds Bastion of operations.gardener.cloud/v1alpha1. The wire format is
// upstream's, field by field; the documentation is ours. Rules are in package schemas.
//
// +kubebuilder:object:generate=true
// +groupName=operations.gardener.cloud
package v1alpha1
