// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	gardencorev1 "github.com/pergola-dev/pergola/api/core/v1"
	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
)

// Condition types of an Extension.
const (
	// ExtensionInstalled reports whether the extension is installed as declared.
	ExtensionInstalled gardencorev1beta1.ConditionType = "Installed"
	// ExtensionRequiredRuntime reports whether objects of the runtime cluster need the extension.
	ExtensionRequiredRuntime gardencorev1beta1.ConditionType = "RequiredRuntime"
	// ExtensionRequiredVirtual reports whether objects of the virtual garden need the extension.
	ExtensionRequiredVirtual gardencorev1beta1.ConditionType = "RequiredVirtual"
	// ControllerInstallationsHealthy reports whether the extension is healthy on all Seeds.
	ControllerInstallationsHealthy gardencorev1beta1.ConditionType = "ControllerInstallationsHealthy"
	// ExtensionHealthy reports whether the extension is healthy in the runtime cluster.
	ExtensionHealthy gardencorev1beta1.ConditionType = "RuntimeHealthy"
	// ExtensionAdmissionHealthy reports whether the admission of the extension is healthy.
	ExtensionAdmissionHealthy gardencorev1beta1.ConditionType = "AdmissionHealthy"
)

// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,path=extensions,singular=extension,shortName=extop
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Installed",type=string,JSONPath=`.status.conditions[?(@.type=="Installed")].status`,description="Whether the extension is installed as declared."
// +kubebuilder:printcolumn:name="Required Runtime",type=string,JSONPath=`.status.conditions[?(@.type=="RequiredRuntime")].status`,description="Whether the runtime cluster needs the extension."
// +kubebuilder:printcolumn:name="Required Virtual",type=string,JSONPath=`.status.conditions[?(@.type=="RequiredVirtual")].status`,description="Whether the virtual garden needs the extension."
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`,description="Time since creation."

// Extension is an extension of Gardener. It defines the handled objects and the installation of
// extension and admission in the runtime cluster, the virtual garden and Seeds.
type Extension struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// Desired state of the Extension.
	// +optional
	Spec ExtensionSpec `json:"spec,omitempty"`
	// Observed state of the Extension.
	// +optional
	Status ExtensionStatus `json:"status,omitempty"`
}

// +kubebuilder:object:root=true

// ExtensionList is a list of Extensions.
type ExtensionList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// Items of the list.
	Items []Extension `json:"items"`
}

// ExtensionSpec is the desired state of an Extension.
type ExtensionSpec struct {
	// Kinds and types of extension objects that the extension handles; each pair once.
	// +optional
	// +listType=atomic
	Resources []gardencorev1beta1.ControllerResource `json:"resources,omitempty"`
	// Installation of the extension and its admission.
	// +optional
	Deployment *Deployment `json:"deployment,omitempty"`
}

// Deployment defines how an extension and its admission are installed.
type Deployment struct {
	// The extension itself.
	// +optional
	ExtensionDeployment *ExtensionDeploymentSpec `json:"extension,omitempty"`
	// Admission of the extension.
	// +optional
	AdmissionDeployment *AdmissionDeploymentSpec `json:"admission,omitempty"`
	// Secrets and ConfigMaps of namespace `garden` that templates in the values may use, as
	// `{{ .resources.NAME.data.KEY }}`.
	// +optional
	// +listType=map
	// +listMapKey=name
	Resources []gardencorev1.NamedResourceReference `json:"resources,omitempty"`
}

// ExtensionDeploymentSpec defines how an extension is installed. In the runtime cluster it is
// installed if needed; on Seeds, through a ControllerRegistration and a ControllerDeployment in the
// virtual garden.
type ExtensionDeploymentSpec struct {
	DeploymentSpec `json:",inline"`
	// Values of the chart on Seeds.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	Values *apiextensionsv1.JSON `json:"values,omitempty"`
	// Values of the chart in the runtime cluster.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	RuntimeClusterValues *apiextensionsv1.JSON `json:"runtimeClusterValues,omitempty"`
	// Installation policy on Seeds: `OnDemand`, `Always` or `AlwaysExceptNoShoots`. Default:
	// `OnDemand`.
	// +optional
	Policy *gardencorev1beta1.ControllerDeploymentPolicy `json:"policy,omitempty"`
	// Labels of the Seeds that may get the extension. Unset: all.
	// +optional
	SeedSelector *metav1.LabelSelector `json:"seedSelector,omitempty"`
	// Whether workloads of the extension get a kubeconfig for the garden.
	// +optional
	InjectGardenKubeconfig *bool `json:"injectGardenKubeconfig,omitempty"`
}

// AdmissionDeploymentSpec defines how the admission of an extension is installed.
type AdmissionDeploymentSpec struct {
	// Deployment in the runtime cluster.
	// +optional
	RuntimeCluster *DeploymentSpec `json:"runtimeCluster,omitempty"`
	// Roles and webhook configurations in the virtual garden.
	// +optional
	VirtualCluster *DeploymentSpec `json:"virtualCluster,omitempty"`
	// Values of both charts.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	Values *apiextensionsv1.JSON `json:"values,omitempty"`
}

// DeploymentSpec is one installation.
type DeploymentSpec struct {
	// Helm chart.
	// +optional
	Helm *ExtensionHelm `json:"helm,omitempty"`
}

// ExtensionHelm is a Helm chart.
type ExtensionHelm struct {
	// OCI repository of the chart.
	// +optional
	OCIRepository *gardencorev1.OCIRepository `json:"ociRepository,omitempty"`
}

// ExtensionStatus is the observed state of an Extension.
type ExtensionStatus struct {
	// Generation that was last reconciled.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Conditions of the extension.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []gardencorev1beta1.Condition `json:"conditions,omitempty"`
	// Provider-specific status in the extension's own API. Set by the extension.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	ProviderStatus *runtime.RawExtension `json:"providerStatus,omitempty"`
}
