// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,path=seeds,singular=seed,categories=gardener
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.conditions[?(@.type=="GardenletReady")].status`,description="Whether the gardenlet of the Seed is alive."
// +kubebuilder:printcolumn:name="Last Operation",type=string,JSONPath=`.status.lastOperation.state`,description="State of the last operation."
// +kubebuilder:printcolumn:name="Provider",type=string,JSONPath=`.spec.provider.type`,description="Provider of the infrastructure."
// +kubebuilder:printcolumn:name="Region",type=string,JSONPath=`.spec.provider.region`,description="Region of the infrastructure."
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`,description="Time since creation."
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=`.status.gardener.version`,description="Version of the gardenlet."
// +kubebuilder:printcolumn:name="K8S Version",type=string,JSONPath=`.status.kubernetesVersion`,description="Kubernetes version of the cluster."
// +kubebuilder:printcolumn:name="Allocatable Shoots",type=string,JSONPath=`.status.allocatable.shoots`,description="How many Shoots the Seed takes.",priority=1
// +kubebuilder:printcolumn:name="System",type=string,JSONPath=`.status.conditions[?(@.type=="SeedSystemComponentsHealthy")].status`,description="Whether the system components are healthy.",priority=1
// +kubebuilder:printcolumn:name="Extensions",type=string,JSONPath=`.status.conditions[?(@.type=="ExtensionsReady")].status`,description="Whether the extensions are ready.",priority=1
// +kubebuilder:printcolumn:name="Backup",type=string,JSONPath=`.status.conditions[?(@.type=="BackupBucketsReady")].status`,description="Whether the backup buckets are ready.",priority=1

// Seed is a cluster that runs control planes of Shoots.
type Seed struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// Desired state of the Seed.
	// +optional
	// +kubebuilder:validation:XValidation:rule="!has(oldSelf.backup) || has(self.backup)",message="backup cannot be removed",fieldPath=".backup"
	// +kubebuilder:validation:XValidation:rule="!has(oldSelf.backup) || !has(self.backup) || self.backup.provider == oldSelf.backup.provider",message="provider of the backup is immutable",fieldPath=".backup.provider"
	// +kubebuilder:validation:XValidation:rule="!has(oldSelf.backup) || !has(self.backup) || (has(self.backup.region) ? self.backup.region : '') == (has(oldSelf.backup.region) ? oldSelf.backup.region : '')",message="region of the backup is immutable",fieldPath=".backup.region"
	// +kubebuilder:validation:XValidation:rule="self.networks.pods == oldSelf.networks.pods",message="network of pods is immutable",fieldPath=".networks.pods"
	// +kubebuilder:validation:XValidation:rule="self.networks.services == oldSelf.networks.services",message="network of services is immutable",fieldPath=".networks.services"
	// +kubebuilder:validation:XValidation:rule="!has(oldSelf.networks.nodes) || has(self.networks.nodes) && self.networks.nodes == oldSelf.networks.nodes",message="network of nodes is immutable",fieldPath=".networks.nodes"
	// +kubebuilder:validation:XValidation:rule="!has(oldSelf.ingress) || !has(self.ingress) || self.ingress.domain == oldSelf.ingress.domain",message="domain of the ingress is immutable",fieldPath=".ingress.domain"
	Spec SeedSpec `json:"spec,omitempty"`
	// Observed state of the Seed.
	// +optional
	Status SeedStatus `json:"status,omitempty"`
}

// +kubebuilder:object:root=true

// SeedList is a list of Seeds.
type SeedList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// Items of the list.
	Items []Seed `json:"items"`
}

// SeedTemplate is a template of a Seed.
type SeedTemplate struct {
	// Labels and annotations of the Seed.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// Spec of the Seed.
	// +optional
	Spec SeedSpec `json:"spec,omitempty"`
}

// SeedSpec is the desired state of a Seed.
type SeedSpec struct {
	// Object store for backups of the Shoots' etcds. Unset: no backups. Cannot be removed.
	// +optional
	Backup *Backup `json:"backup,omitempty"`
	// DNS for the Seed and its Shoots.
	// +optional
	DNS SeedDNS `json:"dns,omitempty"`
	// Networks of the cluster.
	Networks SeedNetworks `json:"networks"`
	// Infrastructure of the cluster.
	Provider SeedProvider `json:"provider"`
	// Taints that repel Shoots without a toleration.
	// +optional
	// +listType=atomic
	Taints []SeedTaint `json:"taints,omitempty"`
	// Persistent volumes.
	// +optional
	Volume *SeedVolume `json:"volume,omitempty"`
	// Settings of components.
	// +optional
	Settings *SeedSettings `json:"settings,omitempty"`
	// Ingress of the cluster.
	// +optional
	Ingress *Ingress `json:"ingress,omitempty"`
	// Access restrictions that the Seed can enforce.
	// +optional
	// +listType=map
	// +listMapKey=name
	AccessRestrictions []AccessRestriction `json:"accessRestrictions,omitempty"`
	// Extensions for the Seed itself.
	// +optional
	// +listType=map
	// +listMapKey=type
	Extensions []Extension `json:"extensions,omitempty"`
	// Objects of namespace `garden` that provider configurations refer to by name.
	// +optional
	// +listType=map
	// +listMapKey=name
	Resources []NamedResourceReference `json:"resources,omitempty"`
}

// Backup is an object store for backups.
type Backup struct {
	// Provider of the object store. Immutable.
	Provider string `json:"provider"`
	// Configuration in the provider's own API.
	// +optional
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	ProviderConfig *runtime.RawExtension `json:"providerConfig,omitempty"`
	// Region of the object store. Immutable. Default: the region of the Seed; required if the
	// providers differ.
	// +optional
	Region *string `json:"region,omitempty"`
	// Secret or WorkloadIdentity with the credentials. Required.
	// +optional
	CredentialsRef *corev1.ObjectReference `json:"credentialsRef,omitempty"`
}

// SeedNetworks are the networks of a Seed.
type SeedNetworks struct {
	// CIDR of the node network. Immutable once set.
	// +optional
	// +kubebuilder:validation:Format=cidr
	Nodes *string `json:"nodes,omitempty"`
	// CIDR of the pod network. Immutable.
	// +kubebuilder:validation:Format=cidr
	Pods string `json:"pods"`
	// CIDR of the service network. Immutable.
	// +kubebuilder:validation:Format=cidr
	Services string `json:"services"`
	// Networks of Shoots that do not set their own.
	// +optional
	ShootDefaults *ShootNetworks `json:"shootDefaults,omitempty"`
	// CIDRs that control planes of Shoots must not reach.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:items:Format=cidr
	BlockCIDRs []string `json:"blockCIDRs,omitempty"`
	// IP families of the cluster. Immutable. Default: IPv4.
	// +optional
	// +listType=atomic
	IPFamilies []IPFamily `json:"ipFamilies,omitempty"`
}

// ShootNetworks are networks of Shoots.
type ShootNetworks struct {
	// CIDR of the pod network.
	// +optional
	// +kubebuilder:validation:Format=cidr
	Pods *string `json:"pods,omitempty"`
	// CIDR of the service network.
	// +optional
	// +kubebuilder:validation:Format=cidr
	Services *string `json:"services,omitempty"`
}

// SeedProvider is the infrastructure of a Seed.
type SeedProvider struct {
	// Type of the provider, for example `aws` or `local`.
	Type string `json:"type"`
	// Configuration in the provider's own API.
	// +optional
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	ProviderConfig *runtime.RawExtension `json:"providerConfig,omitempty"`
	// Region of the infrastructure.
	Region string `json:"region"`
	// Availability zones of the cluster. None may be removed while Shoots use the Seed.
	// +optional
	// +listType=atomic
	Zones []string `json:"zones,omitempty"`
}

// SeedTaint repels Shoots without a toleration.
type SeedTaint struct {
	// Key of the taint; unique within the list.
	Key string `json:"key"`
	// Value of the taint.
	// +optional
	Value *string `json:"value,omitempty"`
}

// SeedTaintProtected is the key of the taint of Seeds that only Shoots of namespace `garden` may
// use.
const SeedTaintProtected = "seed.gardener.cloud/protected"

// SeedVolume holds settings of persistent volumes.
type SeedVolume struct {
	// Minimum size of a volume. Smaller claims are enlarged.
	// +optional
	MinimumSize *resource.Quantity `json:"minimumSize,omitempty"`
	// Provisioners by purpose.
	// +optional
	// +listType=map
	// +listMapKey=name
	Providers []SeedVolumeProvider `json:"providers,omitempty"`
}

// SeedVolumeProvider is a provisioner for a purpose.
type SeedVolumeProvider struct {
	// Purpose, for example `etcd-main`.
	Purpose string `json:"purpose"`
	// Name of the provisioner; unique within the list.
	Name string `json:"name"`
}

// Ingress is the ingress of a cluster.
type Ingress struct {
	// Domain of Gardener's components. Immutable.
	// +kubebuilder:validation:MaxLength=253
	Domain string `json:"domain"`
	// Ingress controller.
	Controller IngressController `json:"controller"`
}

// IngressController configures the ingress controller that Gardener runs.
type IngressController struct {
	// Kind of the controller: `nginx`, the only value.
	// +kubebuilder:validation:Enum=nginx
	Kind string `json:"kind"`
	// Settings of the controller, as in its ConfigMap.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	ProviderConfig *runtime.RawExtension `json:"providerConfig,omitempty"`
}

// IngressKindNginx is the only kind of ingress controller.
const IngressKindNginx = "nginx"

// SeedStatus is the observed state of a Seed.
type SeedStatus struct {
	// Gardenlet that last reconciled the Seed.
	// +optional
	Gardener *Gardener `json:"gardener,omitempty"`
	// Kubernetes version of the cluster.
	// +optional
	KubernetesVersion *string `json:"kubernetesVersion,omitempty"`
	// Conditions of the Seed: `GardenletReady`, `SeedSystemComponentsHealthy`,
	// `BackupBucketsReady`, `ExtensionsReady`, `EmergencyStopShootReconciliations`.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []Condition `json:"conditions,omitempty"`
	// Generation of the Seed that the last operation reconciled.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Identity of the cluster, as the cluster itself knows it. Immutable.
	// +optional
	ClusterIdentity *string `json:"clusterIdentity,omitempty"`
	// Capacity of the Seed, by resource; `shoots` is a number of control planes.
	// +optional
	Capacity corev1.ResourceList `json:"capacity,omitempty"`
	// Capacity that the scheduler may assign: the capacity without reserved resources.
	// +optional
	Allocatable corev1.ResourceList `json:"allocatable,omitempty"`
	// Time at which the gardenlet's client certificate expires.
	// +optional
	ClientCertificateExpirationTimestamp *metav1.Time `json:"clientCertificateExpirationTimestamp,omitempty"`
	// Constraints on operations on the Seed, for example `ManagedResourcesHonored`.
	// +optional
	// +listType=map
	// +listMapKey=type
	Constraints []Condition `json:"constraints,omitempty"`
	// Operation in progress, or the last one.
	// +optional
	LastOperation *LastOperation `json:"lastOperation,omitempty"`
}

// ResourceShoots is the resource that counts control planes of Shoots in a Seed's capacity.
const ResourceShoots corev1.ResourceName = "shoots"
