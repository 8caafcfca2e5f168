// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 holds CredentialsBinding and WorkloadIdentity of
// security.gardener.cloud/v1alpha1. The wire format is upstream's, field by field; the
// documentation is ours. The subresource `token` of a WorkloadIdentity exists only where upstream's
// API server serves the group. Rules are in package schemas.
//
// +kubebuilder:object:generate=true
// +groupName=security.gardener.cloud
package v1alpha1
