// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	gardencorev1 "github.com/pergola-dev/pergola/api/core/v1"
)

// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,path=controllerdeployments,singular=controllerdeployment,shortName=ctrldeploy,categories=gardener
// +kubebuilder:printcolumn:name="Type",type=string,JSONPath=`.type`,description="Way of installation."
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`,description="Time since creation."

// ControllerDeployment defines how an extension is installed. Prefer version v1 of the API.
type ControllerDeployment struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// Installation method. Gardener itself only knows `helm`.
	Type string `json:"type"`
	// Configuration of the installation, in a form that depends on the type. For `helm`: `chart`
	// (gzipped tar archive, in base64) or `ociRepository`, and `values`.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	ProviderConfig *runtime.RawExtension `json:"providerConfig,omitempty"`
	// Whether workloads of the extension get a kubeconfig for the garden.
	// +optional
	InjectGardenKubeconfig *bool `json:"injectGardenKubeconfig,omitempty"`
	// Field of version v1, set only in objects written in that version. Served as written, because
	// both versions are stored alike.
	// +optional
	Helm *gardencorev1.HelmControllerDeployment `json:"helm,omitempty" pergola:"otherVersion"`
	// Field of version v1, like `helm`.
	// +optional
	// +listType=map
	// +listMapKey=name
	Resources []gardencorev1.NamedResourceReference `json:"resources,omitempty" pergola:"otherVersion"`
}

// +kubebuilder:object:root=true

// ControllerDeploymentList is a list of ControllerDeployments.
type ControllerDeploymentList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// Items of the list.
	Items []ControllerDeployment `json:"items"`
}

const (
	// ControllerDeploymentTypeHelm installs a Helm chart.
	ControllerDeploymentTypeHelm = gardencorev1.ControllerDeploymentTypeHelm
)
