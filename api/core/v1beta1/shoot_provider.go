// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Provider holds infrastructure and worker pools.
type Provider struct {
	// Type of the provider, for example `aws` or `local`. Immutable.
	Type string `json:"type"`
	// Configuration of the control plane in the provider's own API.
	// +optional
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	ControlPlaneConfig *runtime.RawExtension `json:"controlPlaneConfig,omitempty"`
	// Configuration of the infrastructure in the provider's own API.
	// +optional
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	InfrastructureConfig *runtime.RawExtension `json:"infrastructureConfig,omitempty"`
	// Worker pools. Empty for a cluster without workers. A cluster with workers cannot become one
	// without, or the reverse.
	// +optional
	// +listType=map
	// +listMapKey=name
	Workers []Worker `json:"workers,omitempty"`
	// Settings of all worker pools.
	// +optional
	WorkersSettings *WorkersSettings `json:"workersSettings,omitempty"`
}

// WorkersSettings holds settings of all worker pools.
type WorkersSettings struct {
	// Access to nodes by SSH.
	// +optional
	SSHAccess *SSHAccess `json:"sshAccess,omitempty"`
}

// SSHAccess configures access to nodes by SSH.
type SSHAccess struct {
	// Whether nodes can be reached by SSH. Default: true.
	Enabled bool `json:"enabled"`
}

// Worker is a pool of similar machines.
type Worker struct {
	// Annotations of the Nodes.
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`
	// Certificates, in PEM form, that the machines trust.
	// +optional
	CABundle *string `json:"caBundle,omitempty"`
	// Container runtime. Default: `containerd`.
	// +optional
	CRI *CRI `json:"cri,omitempty"`
	// Kubernetes version and kubelet settings of the pool.
	// +optional
	Kubernetes *WorkerKubernetes `json:"kubernetes,omitempty"`
	// Labels of the Nodes.
	// +optional
	Labels map[string]string `json:"labels,omitempty"`
	// Name of the pool: a DNS label of at most 15 characters; unique within the list.
	Name string `json:"name"`
	// Machine type and image.
	Machine Machine `json:"machine"`
	// Maximum number of machines, over all zones.
	Maximum int32 `json:"maximum"`
	// Minimum number of machines, over all zones.
	Minimum int32 `json:"minimum"`
	// Maximum number of machines above the desired number during an update; a number or a
	// percentage. Default: 1, with in-place updates 0.
	// +optional
	MaxSurge *intstr.IntOrString `json:"maxSurge,omitempty"`
	// Maximum number of unavailable machines during an update; a number or a percentage. Not 0
	// together with `maxSurge`. Default: 0, with in-place updates 1.
	// +optional
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`
	// Configuration of the pool in the provider's own API.
	// +optional
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	ProviderConfig *runtime.RawExtension `json:"providerConfig,omitempty"`
	// Taints of the Nodes.
	// +optional
	// +listType=atomic
	Taints []corev1.Taint `json:"taints,omitempty"`
	// Root volume. Required if the machine type has no storage of its own.
	// +optional
	Volume *Volume `json:"volume,omitempty"`
	// Additional volumes.
	// +optional
	// +listType=atomic
	DataVolumes []DataVolume `json:"dataVolumes,omitempty"`
	// Name of the data volume for the kubelet's state.
	// +optional
	KubeletDataVolumeName *string `json:"kubeletDataVolumeName,omitempty"`
	// Availability zones that the machines are spread over.
	// +optional
	// +listType=atomic
	Zones []string `json:"zones,omitempty"`
	// System components on the pool.
	// +optional
	SystemComponents *WorkerSystemComponents `json:"systemComponents,omitempty"`
	// Settings of the machine-controller-manager for the pool.
	// +optional
	MachineControllerManagerSettings *MachineControllerManagerSettings `json:"machineControllerManager,omitempty"`
	// Kernel settings of the machines.
	// +optional
	Sysctls map[string]string `json:"sysctls,omitempty"`
	// Settings of the cluster autoscaler for the pool.
	// +optional
	ClusterAutoscaler *ClusterAutoscalerOptions `json:"clusterAutoscaler,omitempty"`
	// Priority of the pool for the expander `priority` of the cluster autoscaler.
	// +optional
	Priority *int32 `json:"priority,omitempty"`
	// Update strategy: `AutoRollingUpdate`, `AutoInPlaceUpdate` or `ManualInPlaceUpdate`. It cannot
	// change between rolling and in-place. Default: `AutoRollingUpdate`.
	// +optional
	UpdateStrategy *MachineUpdateStrategy `json:"updateStrategy,omitempty"`
	// Marks the pool that runs the control plane of a self-hosted Shoot.
	// +optional
	ControlPlane *WorkerControlPlane `json:"controlPlane,omitempty"`
}

// WorkerControlPlane holds settings of the control plane of a self-hosted Shoot.
type WorkerControlPlane struct {
	// Object store for backups of etcd. Unset: no backups.
	// +optional
	Backup *Backup `json:"backup,omitempty"`
	// Exposure of the API server.
	// +optional
	Exposure *Exposure `json:"exposure,omitempty"`
}

// Exposure configures the exposure of the API server of a self-hosted Shoot. At most one field is
// set.
type Exposure struct {
	// Exposure by an extension.
	// +optional
	Extension *ExtensionExposure `json:"extension,omitempty"`
	// Exposure by DNS records with the addresses of the control plane nodes.
	// +optional
	DNS *DNSExposure `json:"dns,omitempty"`
}

// ExtensionExposure is an exposure by an extension.
type ExtensionExposure struct {
	// Type of the extension. Default: the provider of the Shoot.
	// +optional
	Type *string `json:"type,omitempty"`
	// Configuration in the extension's own API.
	// +optional
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	ProviderConfig *runtime.RawExtension `json:"providerConfig,omitempty"`
}

// DNSExposure is an exposure by DNS records. It has no settings.
type DNSExposure struct{}
