// SPDX-License-Identifier: Apache-2.0

// Package v1 holds ControllerDeployment of core.gardener.cloud/v1, the only kind of that version,
// and the types it refers to. The wire format is upstream's, field by field; the documentation is
// ours.
//
// The kind has two versions and no conversion webhook. Objects are stored as written (etcd holds
// version v1), and each version also has the fields of the other, so that no field is lost. A
// manifest may use only the fields of its own version; HelmDeployment reads either form.
//
// +kubebuilder:object:generate=true
// +groupName=core.gardener.cloud
package v1
