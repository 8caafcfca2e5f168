package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	gardencorev1 "github.com/pergola-dev/pergola/api/core/v1"
	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
)

// GardenletReconciled is the condition type that says whether a gardenlet was rolled out as declared.
const GardenletReconciled gardencorev1beta1.ConditionType = "GardenletReconciled"

// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Namespaced,path=gardenlets,singular=gardenlet,shortName=gl;glet,categories=gardener
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.conditions[?(@.type=="GardenletReconciled")].status`,description="Whether the gardenlet was rolled out as declared."
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`,description="Time since creation."

// Gardenlet is a gardenlet for a cluster that is not a Shoot. It lives in namespace `garden`. The operator rolls it out
// once; from then on the gardenlet updates itself.
type Gardenlet struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// The Gardenlet as declared.
	// +optional
	Spec GardenletSpec `json:"spec,omitempty"`
	// The Gardenlet as it is.
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

// GardenletSpec declares a Gardenlet.
type GardenletSpec struct {
	// How the gardenlet runs.
	Deployment GardenletSelfDeployment `json:"deployment"`
	// Configuration of the gardenlet: GardenletConfiguration of gardenlet.config.gardener.cloud/v1alpha1.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	Config runtime.RawExtension `json:"config,omitempty"`
	// Secret, in the namespace of the object, with a kubeconfig for the cluster, for the first time. Unset: the
	// runtime cluster of the Garden.
	// +optional
	KubeconfigSecretRef *corev1.LocalObjectReference `json:"kubeconfigSecretRef,omitempty"`
}

// GardenletSelfDeployment says how a gardenlet runs that updates itself.
type GardenletSelfDeployment struct {
	GardenletDeployment `json:",inline"`
	// Helm chart of the gardenlet. Required where the object is created; overlays may complete it.
	// +optional
	Helm GardenletHelm `json:"helm,omitempty"`
	// Other images for the components that the gardenlet installs: an image vector, as YAML.
	// +optional
	ImageVectorOverwrite *string `json:"imageVectorOverwrite,omitempty"`
	// Other images for what those components install in turn: image vectors by component, as YAML.
	// +optional
	ComponentImageVectorOverwrite *string `json:"componentImageVectorOverwrite,omitempty"`
}

// GardenletHelm is the Helm chart of a gardenlet.
type GardenletHelm struct {
	// Where the chart is pulled from. Required where the object is created.
	// +optional
	OCIRepository gardencorev1.OCIRepository `json:"ociRepository,omitempty"`
}

// GardenletStatus is a Gardenlet as it is.
type GardenletStatus struct {
	// Verdicts on the gardenlet.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []gardencorev1beta1.Condition `json:"conditions,omitempty"`
	// Generation that was last worked on.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
}
