// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
)

// RuntimeCluster is the cluster that runs a Garden.
type RuntimeCluster struct {
	// Ingress of the cluster.
	Ingress Ingress `json:"ingress"`
	// Networks of the cluster.
	Networking RuntimeNetworking `json:"networking"`
	// Infrastructure of the cluster.
	Provider Provider `json:"provider"`
	// Settings of components.
	// +optional
	Settings *Settings `json:"settings,omitempty"`
	// Persistent volumes.
	// +optional
	Volume *Volume `json:"volume,omitempty"`
}

// Ingress is the ingress of the runtime cluster.
type Ingress struct {
	// Domains of components of the Garden. At least one is required; the first one cannot change.
	// +optional
	// +kubebuilder:validation:MinItems=1
	// +listType=atomic
	Domains []DNSDomain `json:"domains,omitempty"`
	// Ingress controller.
	Controller gardencorev1beta1.IngressController `json:"controller"`
}

// RuntimeNetworking holds the networks of the runtime cluster. They must not overlap one another or
// networks of the virtual cluster. Entries can be appended, not removed.
type RuntimeNetworking struct {
	// IP families of the cluster. Default: IPv4.
	// +optional
	// +listType=atomic
	IPFamilies []gardencorev1beta1.IPFamily `json:"ipFamilies,omitempty"`
	// CIDRs of the node network.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:items:Format=cidr
	Nodes []string `json:"nodes,omitempty"`
	// CIDRs of the pod network.
	// +kubebuilder:validation:MinItems=1
	// +listType=atomic
	// +kubebuilder:validation:items:Format=cidr
	Pods []string `json:"pods"`
	// CIDRs of the service network.
	// +kubebuilder:validation:MinItems=1
	// +listType=atomic
	// +kubebuilder:validation:items:Format=cidr
	Services []string `json:"services"`
	// CIDRs that components must not reach.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:items:Format=cidr
	BlockCIDRs []string `json:"blockCIDRs,omitempty"`
}

// Provider is the infrastructure of the runtime cluster.
type Provider struct {
	// Region of the cluster, and of backups that do not name one.
	// +optional
	Region *string `json:"region,omitempty"`
	// Availability zones of the cluster.
	// +optional
	// +listType=atomic
	Zones []string `json:"zones,omitempty"`
}

// Settings are settings of components of the runtime cluster.
type Settings struct {
	// Services of type LoadBalancer.
	// +optional
	LoadBalancerServices *SettingLoadBalancerServices `json:"loadBalancerServices,omitempty"`
	// Vertical pod autoscaler for the runtime cluster. Unset: none is deployed, and the cluster
	// must have its own.
	// +optional
	VerticalPodAutoscaler *SettingVerticalPodAutoscaler `json:"verticalPodAutoscaler,omitempty"`
	// Routing within a zone.
	// +optional
	TopologyAwareRouting *SettingTopologyAwareRouting `json:"topologyAwareRouting,omitempty"`
	// Autoscaler of persistent volume claims.
	// +optional
	PersistentVolumeClaimAutoscaler *SettingPersistentVolumeClaimAutoscaler `json:"persistentVolumeClaimAutoscaler,omitempty"`
}

// SettingLoadBalancerServices holds settings of Services of type LoadBalancer.
type SettingLoadBalancerServices struct {
	// Annotations of all Services.
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`
	// External traffic policy: `Cluster` or `Local`. Default: `Cluster`.
	// +optional
	// +kubebuilder:validation:Enum=Cluster;Local
	ExternalTrafficPolicy *corev1.ServiceExternalTrafficPolicy `json:"externalTrafficPolicy,omitempty"`
	// Proxy protocol. Unset: not allowed.
	// +optional
	ProxyProtocol *LoadBalancerServicesProxyProtocol `json:"proxyProtocol,omitempty"`
}

// LoadBalancerServicesProxyProtocol configures the proxy protocol of load balancers.
type LoadBalancerServicesProxyProtocol struct {
	// Whether connections with proxy protocol are accepted as well as plain ones. Enable it only
	// for load balancers that use it or soon will: until then clients can forge any source address.
	// Default: false.
	Allowed bool `json:"allowed"`
}

// SettingVerticalPodAutoscaler holds settings of the vertical pod autoscaler.
type SettingVerticalPodAutoscaler struct {
	// Whether the operator runs the autoscaler. One is required: disable it only if the cluster has
	// its own. Default: true.
	// +optional
	// +kubebuilder:default=true
	Enabled *bool `json:"enabled,omitempty"`
	// Feature gates of the autoscaler.
	// +optional
	FeatureGates map[string]bool `json:"featureGates,omitempty"`
	// Maximum recommendation (`cpu`, `memory`) for a container. Unset: no limit.
	// +optional
	MaxAllowed corev1.ResourceList `json:"maxAllowed,omitempty"`
}

// SettingTopologyAwareRouting enables or disables routing within a zone.
type SettingTopologyAwareRouting struct {
	// Whether traffic stays within its zone if possible. Requires more than one zone and a highly
	// available control plane. Default: false.
	Enabled bool `json:"enabled"`
}

// SettingPersistentVolumeClaimAutoscaler enables or disables the autoscaler of persistent volume
// claims.
type SettingPersistentVolumeClaimAutoscaler struct {
	// Whether the autoscaler runs. Default: false.
	Enabled bool `json:"enabled"`
}

// Volume holds settings of persistent volumes.
type Volume struct {
	// Minimum size of a volume. Smaller claims are enlarged.
	// +optional
	MinimumSize *resource.Quantity `json:"minimumSize,omitempty"`
}
