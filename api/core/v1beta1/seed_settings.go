// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
)

// SeedSettings holds settings of components of a Seed.
type SeedSettings struct {
	// Spare capacity for control planes.
	// +optional
	ExcessCapacityReservation *SeedSettingExcessCapacityReservation `json:"excessCapacityReservation,omitempty"`
	// Scheduling of Shoots.
	// +optional
	Scheduling *SeedSettingScheduling `json:"scheduling,omitempty"`
	// Services of type LoadBalancer.
	// +optional
	LoadBalancerServices *SeedSettingLoadBalancerServices `json:"loadBalancerServices,omitempty"`
	// Vertical pod autoscaler.
	// +optional
	VerticalPodAutoscaler *SeedSettingVerticalPodAutoscaler `json:"verticalPodAutoscaler,omitempty"`
	// Dependency watchdog.
	// +optional
	DependencyWatchdog *SeedSettingDependencyWatchdog `json:"dependencyWatchdog,omitempty"`
	// Topology-aware routing.
	// +optional
	TopologyAwareRouting *SeedSettingTopologyAwareRouting `json:"topologyAwareRouting,omitempty"`
	// Zones of control planes.
	// +optional
	ZoneSelection *SeedSettingZoneSelection `json:"zoneSelection,omitempty"`
	// Autoscaler of persistent volume claims.
	// +optional
	PersistentVolumeClaimAutoscaler *SeedSettingPersistentVolumeClaimAutoscaler `json:"persistentVolumeClaimAutoscaler,omitempty"`
}

// SeedSettingExcessCapacityReservation reserves spare capacity with pods that control planes can
// displace.
type SeedSettingExcessCapacityReservation struct {
	// Whether spare capacity is reserved. Default: true.
	// +optional
	Enabled *bool `json:"enabled,omitempty"`
	// Deployments that reserve capacity. Default: one with cpu 2 and memory 6Gi.
	// +optional
	// +listType=atomic
	Configs []SeedSettingExcessCapacityReservationConfig `json:"configs,omitempty"`
}

// SeedSettingExcessCapacityReservationConfig is a Deployment that reserves spare capacity.
type SeedSettingExcessCapacityReservationConfig struct {
	// Requests and limits of each pod. Not empty.
	Resources corev1.ResourceList `json:"resources"`
	// Labels of the nodes with the reserved capacity.
	// +optional
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`
	// Tolerations of the pods.
	// +optional
	// +listType=atomic
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`
}

// SeedSettingScheduling holds settings of scheduling.
type SeedSettingScheduling struct {
	// Whether the scheduler may choose the Seed. Default: true.
	// +optional
	Visible bool `json:"visible"`
}

// SeedSettingLoadBalancerServices holds settings of Services of type LoadBalancer.
type SeedSettingLoadBalancerServices struct {
	// Annotations of all Services.
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`
	// External traffic policy: `Cluster` or `Local`. Default: `Cluster`.
	// +optional
	// +kubebuilder:validation:Enum=Cluster;Local
	ExternalTrafficPolicy *corev1.ServiceExternalTrafficPolicy `json:"externalTrafficPolicy,omitempty"`
	// Settings of the load balancers of single zones. Each zone must be one of the Seed's zones,
	// and the Seed must have several.
	// +optional
	// +listType=atomic
	Zones []SeedSettingLoadBalancerServicesZones `json:"zones,omitempty"`
	// Proxy protocol. Unset: not allowed.
	// +optional
	ProxyProtocol *LoadBalancerServicesProxyProtocol `json:"proxyProtocol,omitempty"`
	// Whether each zone has an ingress gateway of its own.
	// +optional
	ZonalIngress *SeedSettingLoadBalancerServicesZonalIngress `json:"zonalIngress,omitempty"`
	// Load balancer class. Kubernetes does not allow a change on existing Services.
	// +optional
	Class *string `json:"class,omitempty"`
}

// SeedSettingLoadBalancerServicesZones holds settings of the load balancers of one zone.
type SeedSettingLoadBalancerServicesZones struct {
	// Name of the zone; unique within the list.
	Name string `json:"name"`
	// Annotations of its Services.
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

// SeedSettingLoadBalancerServicesZonalIngress configures ingress gateways per zone.
type SeedSettingLoadBalancerServicesZonalIngress struct {
	// Whether each zone has an ingress gateway of its own. Default: true.
	// +optional
	// +kubebuilder:default=true
	Enabled *bool `json:"enabled,omitempty"`
}

// SeedSettingVerticalPodAutoscaler holds settings of the vertical pod autoscaler.
type SeedSettingVerticalPodAutoscaler struct {
	// Whether Gardener runs the autoscaler. One is required: disable it only if the cluster has its
	// own. Default: true.
	// +optional
	Enabled bool `json:"enabled"`
	// Feature gates of the autoscaler.
	// +optional
	FeatureGates map[string]bool `json:"featureGates,omitempty"`
	// Maximum recommendation (`cpu`, `memory`) for a container. Unset: no limit.
	// +optional
	MaxAllowed corev1.ResourceList `json:"maxAllowed,omitempty"`
}

// SeedSettingDependencyWatchdog holds settings of the dependency watchdog.
type SeedSettingDependencyWatchdog struct {
	// Weeder, which restarts pods that crash because of a dependency that has recovered.
	// +optional
	Weeder *SeedSettingDependencyWatchdogWeeder `json:"weeder,omitempty"`
	// Prober, which scales controllers of a Shoot to zero while its nodes cannot reach its API
	// server.
	// +optional
	Prober *SeedSettingDependencyWatchdogProber `json:"prober,omitempty"`
}

// SeedSettingDependencyWatchdogWeeder enables or disables the weeder.
type SeedSettingDependencyWatchdogWeeder struct {
	// Whether the weeder runs. Default: true.
	// +optional
	Enabled bool `json:"enabled"`
}

// SeedSettingDependencyWatchdogProber enables or disables the prober.
type SeedSettingDependencyWatchdogProber struct {
	// Whether the prober runs. Default: true.
	// +optional
	Enabled bool `json:"enabled"`
}

// SeedSettingTopologyAwareRouting enables or disables routing within a zone.
type SeedSettingTopologyAwareRouting struct {
	// Whether traffic stays within its zone if possible. The Seed needs more than one zone.
	// Default: false.
	// +optional
	Enabled bool `json:"enabled"`
}

// SeedSettingZoneSelection defines how zones of control planes are chosen.
type SeedSettingZoneSelection struct {
	// Mode of selection. `Prefer` uses zones of the workers if the Seed has them; `Enforce` only
	// uses such zones. Unset: zones are chosen at random.
	Mode ZoneSelectionMode `json:"mode"`
}

// ZoneSelectionMode is a way to choose zones of control planes.
// +kubebuilder:validation:Enum=Prefer;Enforce
type ZoneSelectionMode string

const (
	// ZoneSelectionModePrefer uses zones of the workers if the Seed has them.
	ZoneSelectionModePrefer ZoneSelectionMode = "Prefer"
	// ZoneSelectionModeEnforce only uses zones of the workers.
	ZoneSelectionModeEnforce ZoneSelectionMode = "Enforce"
)

// SeedSettingPersistentVolumeClaimAutoscaler enables or disables the autoscaler of persistent
// volume claims.
type SeedSettingPersistentVolumeClaimAutoscaler struct {
	// Whether the autoscaler runs. Default: false.
	Enabled bool `json:"enabled"`
}
