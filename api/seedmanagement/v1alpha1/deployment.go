// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
)

// GardenletDeployment configures the deployment of a gardenlet.
type GardenletDeployment struct {
	// Number of replicas. Default: 2.
	// +optional
	// +kubebuilder:validation:Minimum=0
	ReplicaCount *int32 `json:"replicaCount,omitempty"`
	// Number of old ReplicaSets to retain. Default: 2.
	// +optional
	// +kubebuilder:validation:Minimum=0
	RevisionHistoryLimit *int32 `json:"revisionHistoryLimit,omitempty"`
	// Name of the ServiceAccount.
	// +optional
	ServiceAccountName *string `json:"serviceAccountName,omitempty"`
	// Image. Unset: the image of the chart or of the parent gardenlet.
	// +optional
	Image *Image `json:"image,omitempty"`
	// Requests and limits of the container.
	// +optional
	Resources *corev1.ResourceRequirements `json:"resources,omitempty"`
	// Labels of the pods.
	// +optional
	PodLabels map[string]string `json:"podLabels,omitempty"`
	// Annotations of the pods.
	// +optional
	PodAnnotations map[string]string `json:"podAnnotations,omitempty"`
	// Volumes of the pods, in addition to those of the chart.
	// +optional
	// +listType=atomic
	AdditionalVolumes []corev1.Volume `json:"additionalVolumes,omitempty"`
	// Mounts of the container, in addition to those of the chart.
	// +optional
	// +listType=atomic
	AdditionalVolumeMounts []corev1.VolumeMount `json:"additionalVolumeMounts,omitempty"`
	// Environment variables of the container.
	// +optional
	// +listType=atomic
	Env []corev1.EnvVar `json:"env,omitempty"`
	// Taints of nodes that the pods tolerate.
	// +optional
	// +listType=atomic
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`
	// Whether the kubelet probes the container. Default: true.
	// +optional
	EnableHealthProbes *bool `json:"enableHealthProbes,omitempty"`
}

// Image is a container image: either `ref`, or `repository` and `tag`.
type Image struct {
	// Registry and repository.
	// +optional
	Repository *string `json:"repository,omitempty"`
	// Tag.
	// +optional
	Tag *string `json:"tag,omitempty"`
	// Pull policy: `Always`, `Never` or `IfNotPresent`. Default: `Always` for the tag `latest`,
	// otherwise `IfNotPresent`.
	// +optional
	// +kubebuilder:validation:Enum=Always;IfNotPresent;Never
	PullPolicy *corev1.PullPolicy `json:"pullPolicy,omitempty"`
	// Reference with registry, repository and tag or digest.
	// +optional
	Ref *string `json:"ref,omitempty"`
}
