// Package v1alpha1 holds the types of extensions.gardener.cloud/v1alpha1: the objects by which a landscape
// hands work to extensions (infrastructure, workers, networks, DNS records, backups …) and reads back what
// they found. The wire format is upstream's. Pergola writes spec and annotations, the extension writes status.
//
// +kubebuilder:object:generate=true
// +groupName=extensions.gardener.cloud
package v1alpha1
