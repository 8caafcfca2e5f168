// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
)

// Addons holds optional components that Gardener installs. Deprecated.
type Addons struct {
	// Kubernetes dashboard.
	// +optional
	KubernetesDashboard *KubernetesDashboard `json:"kubernetesDashboard,omitempty"`
	// Ingress controller.
	// +optional
	NginxIngress *NginxIngress `json:"nginxIngress,omitempty"`
}

// Addon enables or disables an add-on.
type Addon struct {
	// Whether the add-on is installed.
	Enabled bool `json:"enabled"`
}

// KubernetesDashboard holds settings of the Kubernetes dashboard.
type KubernetesDashboard struct {
	Addon `json:",inline"`
	// Authentication mode. Default: `token`, the only value.
	// +optional
	// +kubebuilder:validation:Enum=token
	AuthenticationMode *string `json:"authenticationMode,omitempty"`
}

// KubernetesDashboardAuthModeToken is the only way to log in to the Kubernetes dashboard.
const KubernetesDashboardAuthModeToken = "token"

// NginxIngress holds settings of the ingress controller.
type NginxIngress struct {
	Addon `json:",inline"`
	// Networks that may connect.
	// +optional
	// +listType=atomic
	LoadBalancerSourceRanges []string `json:"loadBalancerSourceRanges,omitempty"`
	// Settings of the controller, as in its ConfigMap.
	// +optional
	Config map[string]string `json:"config,omitempty"`
	// External traffic policy of the Service: `Cluster` or `Local`. Default: `Cluster`.
	// +optional
	// +kubebuilder:validation:Enum=Cluster;Local
	ExternalTrafficPolicy *corev1.ServiceExternalTrafficPolicy `json:"externalTrafficPolicy,omitempty"`
}

// Hibernation scales control plane and nodes to zero.
type Hibernation struct {
	// Whether the cluster must be hibernated. Schedules change this field. Default: false.
	// +optional
	Enabled *bool `json:"enabled,omitempty"`
	// Times at which the cluster is hibernated and woken up.
	// +optional
	// +listType=atomic
	Schedules []HibernationSchedule `json:"schedules,omitempty"`
}

// HibernationSchedule defines when a cluster is hibernated and woken up. At least one of start and
// end is set.
type HibernationSchedule struct {
	// Time of hibernation, as a cron expression with five fields.
	// +optional
	Start *string `json:"start,omitempty"`
	// Time of wake-up, as a cron expression with five fields.
	// +optional
	End *string `json:"end,omitempty"`
	// Time zone of both, by its IANA name, for example `Europe/Berlin`. Default: UTC.
	// +optional
	Location *string `json:"location,omitempty"`
}

// Monitoring holds settings of monitoring.
type Monitoring struct {
	// Receivers of alerts.
	// +optional
	Alerting *Alerting `json:"alerting,omitempty"`
}

// Alerting configures the receivers of alerts.
type Alerting struct {
	// E-mail addresses that get alerts.
	// +optional
	// +listType=atomic
	EmailReceivers []string `json:"emailReceivers,omitempty"`
}

// SystemComponents holds settings of system components within the cluster.
type SystemComponents struct {
	// Cluster DNS.
	// +optional
	CoreDNS *CoreDNS `json:"coreDNS,omitempty"`
	// DNS cache on every node.
	// +optional
	NodeLocalDNS *NodeLocalDNS `json:"nodeLocalDNS,omitempty"`
}

// CoreDNS holds settings of the cluster DNS.
type CoreDNS struct {
	// Autoscaling of the cluster DNS.
	// +optional
	Autoscaling *CoreDNSAutoscaling `json:"autoscaling,omitempty"`
	// Rewriting of queries that search paths were wrongly appended to.
	// +optional
	Rewriting *CoreDNSRewriting `json:"rewriting,omitempty"`
}

// CoreDNSAutoscaling configures the autoscaling of the cluster DNS.
type CoreDNSAutoscaling struct {
	// Mode: `horizontal` (by load) or `cluster-proportional` (by number of nodes and cores).
	// Default: `horizontal`.
	// +optional
	// +kubebuilder:default=horizontal
	Mode CoreDNSAutoscalingMode `json:"mode"`
}

// CoreDNSAutoscalingMode is a way to scale the cluster DNS.
// +kubebuilder:validation:Enum=horizontal;cluster-proportional
type CoreDNSAutoscalingMode string

const (
	// CoreDNSAutoscalingModeHorizontal scales by load.
	CoreDNSAutoscalingModeHorizontal CoreDNSAutoscalingMode = "horizontal"
	// CoreDNSAutoscalingModeClusterProportional scales by the number of nodes and cores.
	CoreDNSAutoscalingModeClusterProportional CoreDNSAutoscalingMode = "cluster-proportional"
)

// CoreDNSRewriting selects the queries that are rewritten.
type CoreDNSRewriting struct {
	// Suffixes of names outside the cluster, each with at least one dot. Queries in which a search
	// path follows such a suffix are answered without the search path.
	// +optional
	// +listType=atomic
	CommonSuffixes []string `json:"commonSuffixes,omitempty"`
}

// NodeLocalDNS holds settings of the DNS cache on every node.
type NodeLocalDNS struct {
	// Whether the cache is installed. A change replaces the nodes.
	Enabled bool `json:"enabled"`
	// Whether the cache queries the cluster DNS by TCP. Default: true.
	// +optional
	ForceTCPToClusterDNS *bool `json:"forceTCPToClusterDNS,omitempty"`
	// Whether the cache queries the DNS of the infrastructure by TCP. Default: true.
	// +optional
	ForceTCPToUpstreamDNS *bool `json:"forceTCPToUpstreamDNS,omitempty"`
	// True also sends queries for names outside the cluster to the cluster DNS. Default: false;
	// they go directly to the DNS of the infrastructure.
	// +optional
	DisableForwardToUpstreamDNS *bool `json:"disableForwardToUpstreamDNS,omitempty"`
}
