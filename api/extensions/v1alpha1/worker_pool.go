// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
)

// WorkerPool is a pool of similar machines.
type WorkerPool struct {
	// Machine type.
	MachineType string `json:"machineType"`
	// Maximum number of machines.
	Maximum int32 `json:"maximum"`
	// Maximum number of machines above the desired number during an update; a number or a
	// percentage.
	MaxSurge intstr.IntOrString `json:"maxSurge"`
	// Maximum number of unavailable machines during an update; a number or a percentage.
	MaxUnavailable intstr.IntOrString `json:"maxUnavailable"`
	// Annotations of the Nodes.
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`
	// Labels of the Nodes.
	// +optional
	Labels map[string]string `json:"labels,omitempty"`
	// Taints of the Nodes.
	// +optional
	// +listType=atomic
	Taints []corev1.Taint `json:"taints,omitempty"`
	// Machine image.
	MachineImage MachineImage `json:"machineImage,omitempty"`
	// Minimum number of machines.
	Minimum int32 `json:"minimum"`
	// Name of the pool; unique within the list.
	Name string `json:"name"`
	// Name of the Secret with the configuration of the node agent. A new name replaces all machines
	// of the pool.
	// +optional
	NodeAgentSecretName *string `json:"nodeAgentSecretName,omitempty"`
	// Configuration of the pool in the provider's own API.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	ProviderConfig *runtime.RawExtension `json:"providerConfig,omitempty"`
	// Secret key with the user data of new machines.
	UserDataSecretRef corev1.SecretKeySelector `json:"userDataSecretRef"`
	// Root volume.
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
	// Settings of the machine-controller-manager for this pool.
	// +optional
	MachineControllerManagerSettings *gardencorev1beta1.MachineControllerManagerSettings `json:"machineControllerManager,omitempty"`
	// Kubernetes version of the Nodes.
	// +optional
	KubernetesVersion *string `json:"kubernetesVersion,omitempty"`
	// Configuration of the kubelet.
	// +optional
	KubeletConfig *gardencorev1beta1.KubeletConfig `json:"kubeletConfig,omitempty"`
	// Expected properties of a Node, for scaling up from zero.
	// +optional
	NodeTemplate *NodeTemplate `json:"nodeTemplate,omitempty"`
	// CPU architecture of machines and image.
	// +optional
	Architecture *string `json:"architecture,omitempty"`
	// Settings of the cluster autoscaler for this pool.
	// +optional
	ClusterAutoscaler *ClusterAutoscalerOptions `json:"clusterAutoscaler,omitempty"`
	// Priority for the cluster autoscaler's priority expander.
	// +optional
	Priority *int32 `json:"priority,omitempty"`
	// Update strategy of the machines.
	// +optional
	UpdateStrategy *gardencorev1beta1.MachineUpdateStrategy `json:"updateStrategy,omitempty"`
}

// ClusterAutoscalerOptions holds settings of the cluster autoscaler for one pool.
type ClusterAutoscalerOptions struct {
	// Share of a Node's requests, from 0.0 to 1.0, below which the Node may be removed.
	// +optional
	ScaleDownUtilizationThreshold *string `json:"scaleDownUtilizationThreshold,omitempty"`
	// Share of a Node's GPU requests, from 0.0 to 1.0, below which the Node may be removed.
	// +optional
	ScaleDownGpuUtilizationThreshold *string `json:"scaleDownGpuUtilizationThreshold,omitempty"`
	// Time for which a Node must be unneeded before it is removed.
	// +optional
	// +kubebuilder:validation:Format=duration
	ScaleDownUnneededTime *metav1.Duration `json:"scaleDownUnneededTime,omitempty"`
	// Time for which a Node that is not ready must be unneeded before it is removed.
	// +optional
	// +kubebuilder:validation:Format=duration
	ScaleDownUnreadyTime *metav1.Duration `json:"scaleDownUnreadyTime,omitempty"`
	// Timeout for a new Node to become ready.
	// +optional
	// +kubebuilder:validation:Format=duration
	MaxNodeProvisionTime *metav1.Duration `json:"maxNodeProvisionTime,omitempty"`
}

// NodeTemplate holds expected properties of a Node.
type NodeTemplate struct {
	// Expected capacity.
	Capacity corev1.ResourceList `json:"capacity"`
	// Additional capacity that no machine type provides, such as resources of device plugins.
	// +optional
	VirtualCapacity corev1.ResourceList `json:"virtualCapacity,omitempty"`
}

// MachineImage names a machine image; the provider maps it to its own identifiers.
type MachineImage struct {
	// Name of the image.
	Name string `json:"name"`
	// Version of the image.
	Version string `json:"version"`
}

// Volume is the root volume of a machine.
type Volume struct {
	// Name by which the volume can be referred to.
	// +optional
	Name *string `json:"name,omitempty"`
	// Type of the volume.
	// +optional
	Type *string `json:"type,omitempty"`
	// Size of the volume, for example `50Gi`.
	Size string `json:"size"`
	// Whether the volume is encrypted.
	// +optional
	Encrypted *bool `json:"encrypted,omitempty"`
}

// DataVolume is an additional volume of a machine.
type DataVolume struct {
	// Name by which the volume can be referred to.
	Name string `json:"name"`
	// Type of the volume.
	// +optional
	Type *string `json:"type,omitempty"`
	// Size of the volume, for example `50Gi`.
	Size string `json:"size"`
	// Whether the volume is encrypted.
	// +optional
	Encrypted *bool `json:"encrypted,omitempty"`
}
