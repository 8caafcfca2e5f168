// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 holds the types of extensions.gardener.cloud/v1alpha1. With these objects a
// landscape delegates work to extensions (infrastructure, workers, networks, DNS records, backups
// …) and reads the results. The wire format is upstream's. Pergola writes spec and annotations, the
// extension writes status.
//
// +kubebuilder:object:generate=true
// +groupName=extensions.gardener.cloud
package v1alpha1
