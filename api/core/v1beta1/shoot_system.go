package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
)

// Addons are optional components that Gardener installs. Deprecated.
type Addons struct {
	// Kubernetes dashboard.
	// +optional
	KubernetesDashboard *KubernetesDashboard `json:"kubernetesDashboard,omitempty"`
	// Ingress controller.
	// +optional
	NginxIngress *NginxIngress `json:"nginxIngress,omitempty"`
}

// Addon switches an add-on on or off.
type Addon struct {
	// Whether the add-on is installed.
	Enabled bool `json:"enabled"`
}

// KubernetesDashboard holds settings of the Kubernetes dashboard.
type KubernetesDashboard struct {
	Addon `json:",inline"`
	// How users log in. Default: `token`, the only value.
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
	// Whether the cluster is to be hibernated. With schedules, they change this field. Default: false.
	// +optional
	Enabled *bool `json:"enabled,omitempty"`
	// When the cluster is hibernated and woken up.
	// +optional
	// +listType=atomic
	Schedules []HibernationSchedule `json:"schedules,omitempty"`
}

// HibernationSchedule says when a cluster is hibernated and woken up. At least one of start and end is given.
type HibernationSchedule struct {
	// When the cluster is hibernated, as a cron expression with five fields.
	// +optional
	Start *string `json:"start,omitempty"`
	// When the cluster is woken up, as a cron expression with five fields.
	// +optional
	End *string `json:"end,omitempty"`
	// Time zone of both, by its IANA name, for example `Europe/Berlin`. Default: UTC.
	// +optional
	Location *string `json:"location,omitempty"`
}

// Monitoring holds settings of monitoring.
type Monitoring struct {
	// Who gets alerts.
	// +optional
	Alerting *Alerting `json:"alerting,omitempty"`
}

// Alerting says who gets alerts.
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
	// How the cluster DNS is scaled.
	// +optional
	Autoscaling *CoreDNSAutoscaling `json:"autoscaling,omitempty"`
	// Queries that are rewritten, because search paths were wrongly appended to them.
	// +optional
	Rewriting *CoreDNSRewriting `json:"rewriting,omitempty"`
}

// CoreDNSAutoscaling says how the cluster DNS is scaled.
type CoreDNSAutoscaling struct {
	// `horizontal` (by load) or `cluster-proportional` (by number of nodes and cores). Default: `horizontal`.
	// +optional
	// +kubebuilder:default=horizontal
	Mode CoreDNSAutoscalingMode `json:"mode"`
}

// CoreDNSAutoscalingMode is a way of scaling the cluster DNS.
// +kubebuilder:validation:Enum=horizontal;cluster-proportional
type CoreDNSAutoscalingMode string

const (
	// CoreDNSAutoscalingModeHorizontal scales by load.
	CoreDNSAutoscalingModeHorizontal CoreDNSAutoscalingMode = "horizontal"
	// CoreDNSAutoscalingModeClusterProportional scales by the number of nodes and cores.
	CoreDNSAutoscalingModeClusterProportional CoreDNSAutoscalingMode = "cluster-proportional"
)

// CoreDNSRewriting says which queries are rewritten.
type CoreDNSRewriting struct {
	// Suffixes of names outside the cluster, each with at least one dot. Queries in which a search path follows such a
	// suffix are answered without it.
	// +optional
	// +listType=atomic
	CommonSuffixes []string `json:"commonSuffixes,omitempty"`
}

// NodeLocalDNS holds settings of the DNS cache on every node.
type NodeLocalDNS struct {
	// Whether the cache is installed. A change replaces the nodes.
	Enabled bool `json:"enabled"`
	// Whether the cache asks the cluster DNS by TCP. Default: true.
	// +optional
	ForceTCPToClusterDNS *bool `json:"forceTCPToClusterDNS,omitempty"`
	// Whether the cache asks the DNS of the infrastructure by TCP. Default: true.
	// +optional
	ForceTCPToUpstreamDNS *bool `json:"forceTCPToUpstreamDNS,omitempty"`
	// True sends queries for names outside the cluster to the cluster DNS too. Default: false, straight to the DNS of
	// the infrastructure.
	// +optional
	DisableForwardToUpstreamDNS *bool `json:"disableForwardToUpstreamDNS,omitempty"`
}
