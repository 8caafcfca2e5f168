// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,path=controllerinstallations,singular=controllerinstallation,shortName=ctrlinst,categories=gardener
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Registration",type=string,JSONPath=`.spec.registrationRef.name`,description="ControllerRegistration of the extension."
// +kubebuilder:printcolumn:name="Seed",type=string,JSONPath=`.spec.seedRef.name`,description="Seed that the extension is for."
// +kubebuilder:printcolumn:name="Valid",type=string,JSONPath=`.status.conditions[?(@.type=="Valid")].status`,description="Whether the installation is valid."
// +kubebuilder:printcolumn:name="Installed",type=string,JSONPath=`.status.conditions[?(@.type=="Installed")].status`,description="Whether the extension is installed."
// +kubebuilder:printcolumn:name="Healthy",type=string,JSONPath=`.status.conditions[?(@.type=="Healthy")].status`,description="Whether the extension is healthy."
// +kubebuilder:printcolumn:name="Progressing",type=string,JSONPath=`.status.conditions[?(@.type=="Progressing")].status`,description="Whether the extension is being rolled out."
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`,description="Time since creation."

// ControllerInstallation requests an extension on one Seed or self-hosted Shoot. The
// controller-manager creates and removes it.
type ControllerInstallation struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// Desired state of the ControllerInstallation. Immutable once the object is being deleted.
	// +optional
	Spec ControllerInstallationSpec `json:"spec,omitempty"`
	// Observed state of the ControllerInstallation.
	// +optional
	Status ControllerInstallationStatus `json:"status,omitempty"`
}

// +kubebuilder:object:root=true

// ControllerInstallationList is a list of ControllerInstallations.
type ControllerInstallationList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// Items of the list.
	Items []ControllerInstallation `json:"items"`
}

// ControllerInstallationSpec is the desired state of a ControllerInstallation. At least one of
// `seedRef` and `shootRef` is set.
type ControllerInstallationSpec struct {
	// ControllerRegistration of the extension. Its name is immutable.
	// +kubebuilder:validation:XValidation:rule="(has(self.name) ? self.name : '') == (has(oldSelf.name) ? oldSelf.name : '')",message="name of the registration is immutable",fieldPath=".name"
	RegistrationRef corev1.ObjectReference `json:"registrationRef"`
	// Seed that the extension is for. Its name is immutable.
	// +optional
	SeedRef *corev1.ObjectReference `json:"seedRef,omitempty"`
	// Self-hosted Shoot that the extension is for. Its name and namespace are immutable.
	// +optional
	ShootRef *corev1.ObjectReference `json:"shootRef,omitempty"`
	// ControllerDeployment that defines how the extension is installed.
	// +optional
	DeploymentRef *corev1.ObjectReference `json:"deploymentRef,omitempty"`
	// Secrets and ConfigMaps that the values of the chart use, as of the creation of the
	// installation.
	// +optional
	// +listType=atomic
	ResourceRefs []corev1.ObjectReference `json:"resourceRefs,omitempty"`
}

// ControllerInstallationStatus is the observed state of a ControllerInstallation.
type ControllerInstallationStatus struct {
	// Conditions of the extension: `Valid`, `Installed`, `Healthy`, `Progressing`, `Required`.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []Condition `json:"conditions,omitempty"`
	// Status of the installation method in its own API.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	ProviderStatus *runtime.RawExtension `json:"providerStatus,omitempty"`
}

// Condition types of a ControllerInstallation.
const (
	// ControllerInstallationValid reports whether the installation can be carried out as declared.
	ControllerInstallationValid ConditionType = "Valid"
	// ControllerInstallationInstalled reports whether the extension is installed.
	ControllerInstallationInstalled ConditionType = "Installed"
	// ControllerInstallationHealthy reports whether the extension is healthy.
	ControllerInstallationHealthy ConditionType = "Healthy"
	// ControllerInstallationProgressing reports whether the extension is being rolled out.
	ControllerInstallationProgressing ConditionType = "Progressing"
	// ControllerInstallationRequired reports whether objects for the extension exist, so that it
	// must stay.
	ControllerInstallationRequired ConditionType = "Required"
)
