// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	gardencorev1 "github.com/pergola-dev/pergola/api/core/v1"
	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
)

// GardenletReconciled is the condition type that reports whether a gardenlet was rolled out as
// declared.
const GardenletReconciled gardencorev1beta1.ConditionType = "GardenletReconciled"

// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Namespaced,path=gardenlets,singular=gardenlet,shortName=gl;glet,categories=gardener
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.conditions[?(@.type=="GardenletReconciled")].status`,description="Whether the gardenlet was rolled out as declared."
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`,description="Time since creation."

// Gardenlet is a gardenlet for a cluster that is not a Shoot, in namespace `garden`. The operator
// rolls it out once; afterwards the gardenlet updates itself.
type Gardenlet struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// Desired state of the Gardenlet.
	// +optional
	Spec GardenletSpec `json:"spec,omitempty"`
	// Observed state of the Gardenlet.
	// +optional
	Status GardenletStatus `json:"status,omitempty"`
}

// +kubebuilder:object:root=true

// GardenletList is a list of Gardenlets.
type GardenletList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// Items of the list.
	Items []Gardenlet `json:"items"`
}

// GardenletSpec is the desired state of a Gardenlet.
type GardenletSpec struct {
	// Deployment of the gardenlet.
	Deployment GardenletSelfDeployment `json:"deployment"`
	// Configuration of the gardenlet: GardenletConfiguration of
	// gardenlet.config.gardener.cloud/v1alpha1.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	Config runtime.RawExtension `json:"config,omitempty"`
	// Secret, in the namespace of the object, with a kubeconfig for the first rollout to the
	// cluster. Unset: the runtime cluster of the Garden.
	// +optional
	KubeconfigSecretRef *corev1.LocalObjectReference `json:"kubeconfigSecretRef,omitempty"`
}

// GardenletSelfDeployment configures the deployment of a gardenlet that updates itself.
type GardenletSelfDeployment struct {
	GardenletDeployment `json:",inline"`
	// Helm chart of the gardenlet. Required when the object is created; overlays may complete it.
	// +optional
	Helm GardenletHelm `json:"helm,omitempty"`
	// Replacement images for the components that the gardenlet installs: an image vector, as YAML.
	// +optional
	ImageVectorOverwrite *string `json:"imageVectorOverwrite,omitempty"`
	// Replacement images for workloads that those components install: image vectors by component,
	// as YAML.
	// +optional
	ComponentImageVectorOverwrite *string `json:"componentImageVectorOverwrite,omitempty"`
}

// GardenletHelm is the Helm chart of a gardenlet.
type GardenletHelm struct {
	// OCI repository of the chart. Required when the object is created.
	// +optional
	OCIRepository gardencorev1.OCIRepository `json:"ociRepository,omitempty"`
}

// GardenletStatus is the observed state of a Gardenlet.
type GardenletStatus struct {
	// Conditions of the gardenlet.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []gardencorev1beta1.Condition `json:"conditions,omitempty"`
	// Generation that was last reconciled.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
}
