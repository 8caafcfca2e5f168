// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
)

// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,path=gardens,singular=garden,shortName=grdn
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="K8S Version",type=string,JSONPath=`.spec.virtualCluster.kubernetes.version`,description="Kubernetes version of the virtual cluster."
// +kubebuilder:printcolumn:name="Gardener Version",type=string,JSONPath=`.status.gardener.version`,description="Version that last worked on the Garden."
// +kubebuilder:printcolumn:name="Last Operation",type=string,JSONPath=`.status.lastOperation.state`,description="State of the last operation."
// +kubebuilder:printcolumn:name="Runtime",type=string,JSONPath=`.status.conditions[?(@.type=="RuntimeComponentsHealthy")].status`,description="Whether components of the runtime cluster are healthy."
// +kubebuilder:printcolumn:name="Virtual",type=string,JSONPath=`.status.conditions[?(@.type=="VirtualComponentsHealthy")].status`,description="Whether components of the virtual cluster are healthy."
// +kubebuilder:printcolumn:name="API Server",type=string,JSONPath=`.status.conditions[?(@.type=="VirtualGardenAPIServerAvailable")].status`,description="Whether the API server of the virtual cluster answers."
// +kubebuilder:printcolumn:name="Observability",type=string,JSONPath=`.status.conditions[?(@.type=="ObservabilityComponentsHealthy")].status`,description="Whether monitoring and logging are healthy."
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`,description="Time since creation."

// Garden is the core of a landscape: the virtual cluster that serves Gardener's API, and the
// runtime cluster that runs it. A runtime cluster has one Garden.
type Garden struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// Desired state of the Garden.
	// +optional
	Spec GardenSpec `json:"spec,omitempty"`
	// Observed state of the Garden.
	// +optional
	Status GardenStatus `json:"status,omitempty"`
}

// +kubebuilder:object:root=true

// GardenList is a list of Gardens.
type GardenList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// Items of the list.
	Items []Garden `json:"items"`
}

// GardenSpec is the desired state of a Garden.
type GardenSpec struct {
	// DNS providers. Unset: Gardener manages no DNS records for the Garden.
	// +optional
	DNS *DNSManagement `json:"dns,omitempty"`
	// Extensions for the Garden itself.
	// +optional
	// +listType=atomic
	Extensions []GardenExtension `json:"extensions,omitempty"`
	// Cluster that runs the Garden.
	RuntimeCluster RuntimeCluster `json:"runtimeCluster"`
	// Cluster that serves Gardener's API.
	// +kubebuilder:validation:XValidation:rule="!has(oldSelf.controlPlane) || !has(oldSelf.controlPlane.highAvailability) || has(self.controlPlane) && has(self.controlPlane.highAvailability)",message="high availability cannot be switched off",fieldPath=".controlPlane.highAvailability"
	VirtualCluster VirtualCluster `json:"virtualCluster"`
	// Objects of namespace `garden` that provider configurations refer to by name. Secrets and
	// ConfigMaps only.
	// +optional
	// +listType=atomic
	Resources []gardencorev1beta1.NamedResourceReference `json:"resources,omitempty"`
}

// GardenExtension enables one extension of kind `Extension`.
type GardenExtension struct {
	// Type as registered by the extension; unique within the list.
	// +kubebuilder:validation:MinLength=1
	Type string `json:"type"`
	// Configuration in the extension's own API.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	ProviderConfig *runtime.RawExtension `json:"providerConfig,omitempty"`
}

// DNSManagement holds DNS providers.
type DNSManagement struct {
	// DNS providers that domains of the Garden refer to by name.
	// +kubebuilder:validation:MinItems=1
	// +listType=atomic
	Providers []DNSProvider `json:"providers"`
}

// DNSProvider is a DNS service with credentials.
type DNSProvider struct {
	// Name that domains refer to; unique within the list.
	Name string `json:"name"`
	// Type of the provider, for example `aws-route53`.
	// +kubebuilder:validation:MinLength=1
	Type string `json:"type"`
	// Configuration in the provider's own API.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	Config *runtime.RawExtension `json:"providerConfig,omitempty"`
	// Secret, in namespace `garden`, with the credentials.
	SecretRef corev1.LocalObjectReference `json:"secretRef"`
}

// DNSDomain is a domain with the DNS provider that serves it.
type DNSDomain struct {
	// Name of the domain.
	Name string `json:"name"`
	// Name of a DNS provider of `spec.dns`. Required if that has providers, otherwise not allowed.
	// +optional
	Provider *string `json:"provider,omitempty"`
}
