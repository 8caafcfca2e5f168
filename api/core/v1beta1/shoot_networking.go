// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	"k8s.io/apimachinery/pkg/runtime"
)

// Networking holds network plugin and CIDRs.
type Networking struct {
	// Type of the network plugin, for example `calico` or `cilium`. Required for clusters with
	// workers. Immutable, except for migrations that an extension supports.
	// +optional
	Type *string `json:"type,omitempty"`
	// Configuration in the network extension's own API.
	// +optional
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	ProviderConfig *runtime.RawExtension `json:"providerConfig,omitempty"`
	// CIDR of the pod network. Immutable once set. Default: the Seed's default for Shoots.
	// +optional
	// +kubebuilder:validation:Format=cidr
	Pods *string `json:"pods,omitempty"`
	// CIDR of the node network. It can be extended. Unset: reported by the infrastructure.
	// +optional
	// +kubebuilder:validation:Format=cidr
	Nodes *string `json:"nodes,omitempty"`
	// CIDR of the service network. Immutable once set. Default: the Seed's default for Shoots.
	// +optional
	// +kubebuilder:validation:Format=cidr
	Services *string `json:"services,omitempty"`
	// IP families, in order of preference: IPv4, IPv6 or both. Immutable, except for the move from
	// IPv4 to both and back. Default: IPv4.
	// +optional
	// +listType=atomic
	IPFamilies []IPFamily `json:"ipFamilies,omitempty"`
}

const (
	// DefaultPodNetworkCIDR is the usual pod network of a Shoot.
	DefaultPodNetworkCIDR = "100.96.0.0/11"
	// DefaultServiceNetworkCIDR is the usual service network of a Shoot.
	DefaultServiceNetworkCIDR = "100.64.0.0/13"
)
