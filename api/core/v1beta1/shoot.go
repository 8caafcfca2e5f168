// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Namespaced,path=shoots,singular=shoot,categories=gardener
// +kubebuilder:subresource:status
// +kubebuilder:selectablefield:JSONPath=`.spec.seedName`
// +kubebuilder:printcolumn:name="CloudProfile",type=string,JSONPath=`.spec.cloudProfile.name`,description="CloudProfile of the Shoot."
// +kubebuilder:printcolumn:name="Provider",type=string,JSONPath=`.spec.provider.type`,description="Provider of the infrastructure."
// +kubebuilder:printcolumn:name="Region",type=string,JSONPath=`.spec.region`,description="Region of the infrastructure."
// +kubebuilder:printcolumn:name="K8S Version",type=string,JSONPath=`.spec.kubernetes.version`,description="Kubernetes version of the control plane."
// +kubebuilder:printcolumn:name="Hibernation",type=boolean,JSONPath=`.status.hibernated`,description="Whether the Shoot is hibernated."
// +kubebuilder:printcolumn:name="Last Operation",type=string,JSONPath=`.status.lastOperation.type`,description="Kind of the last operation."
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.status.lastOperation.state`,description="State of the last operation."
// +kubebuilder:printcolumn:name="Progress",type=integer,JSONPath=`.status.lastOperation.progress`,description="Progress of the last operation in percent.",priority=1
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.metadata.labels.shoot\.gardener\.cloud/status`,description="Health of the Shoot as a whole."
// +kubebuilder:printcolumn:name="Purpose",type=string,JSONPath=`.spec.purpose`,description="Purpose of the Shoot.",priority=1
// +kubebuilder:printcolumn:name="Seed",type=string,JSONPath=`.spec.seedName`,description="Seed that runs the control plane.",priority=1
// +kubebuilder:printcolumn:name="Gardener Version",type=string,JSONPath=`.status.gardener.version`,description="Version that last worked on the Shoot.",priority=1
// +kubebuilder:printcolumn:name="APIServer",type=string,JSONPath=`.status.conditions[?(@.type=="APIServerAvailable")].status`,description="Whether the API server answers.",priority=1
// +kubebuilder:printcolumn:name="ControlPlane",type=string,JSONPath=`.status.conditions[?(@.type=="ControlPlaneHealthy")].status`,description="Whether the control plane is healthy.",priority=1
// +kubebuilder:printcolumn:name="Observability",type=string,JSONPath=`.status.conditions[?(@.type=="ObservabilityComponentsHealthy")].status`,description="Whether monitoring and logging are healthy.",priority=1
// +kubebuilder:printcolumn:name="Nodes",type=string,JSONPath=`.status.conditions[?(@.type=="EveryNodeReady")].status`,description="Whether every node is ready.",priority=1
// +kubebuilder:printcolumn:name="System",type=string,JSONPath=`.status.conditions[?(@.type=="SystemComponentsHealthy")].status`,description="Whether the system components in the Shoot are healthy.",priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`,description="Time since creation."

// Shoot is a Kubernetes cluster: a control plane that runs on a Seed, and worker nodes on an
// infrastructure.
type Shoot struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata. Project and Shoot name together may have at most 21 characters.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// Desired state of the cluster. Immutable once the Shoot is being deleted.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self.region == oldSelf.region",message="region is immutable",fieldPath=".region"
	// +kubebuilder:validation:XValidation:rule="self.provider.type == oldSelf.provider.type",message="type of the provider is immutable",fieldPath=".provider.type"
	// +kubebuilder:validation:XValidation:rule="(has(self.exposureClassName) ? self.exposureClassName : '') == (has(oldSelf.exposureClassName) ? oldSelf.exposureClassName : '')",message="exposureClassName is immutable",fieldPath=".exposureClassName"
	// +kubebuilder:validation:XValidation:rule="!has(oldSelf.networking) || !has(oldSelf.networking.pods) || !has(self.networking) || has(self.networking.pods) && self.networking.pods == oldSelf.networking.pods",message="network of pods is immutable",fieldPath=".networking.pods"
	// +kubebuilder:validation:XValidation:rule="!has(oldSelf.networking) || !has(oldSelf.networking.services) || !has(self.networking) || has(self.networking.services) && self.networking.services == oldSelf.networking.services",message="network of services is immutable",fieldPath=".networking.services"
	Spec ShootSpec `json:"spec,omitempty"`
	// Observed state of the cluster.
	// +optional
	Status ShootStatus `json:"status,omitempty"`
}

// +kubebuilder:object:root=true

// ShootList is a list of Shoots.
type ShootList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// Items of the list.
	Items []Shoot `json:"items"`
}

// ShootTemplate is a template of a Shoot.
type ShootTemplate struct {
	// Labels and annotations of the Shoot.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// Spec of the Shoot.
	// +optional
	Spec ShootSpec `json:"spec,omitempty"`
}

// ShootSpec is the desired state of a cluster.
type ShootSpec struct {
	// Add-ons. Only for purpose `evaluation`; forbidden from Kubernetes 1.35 on. Deprecated.
	// +optional
	Addons *Addons `json:"addons,omitempty"`
	// Name of the CloudProfile. Forbidden from Kubernetes 1.34 on. Deprecated: use `cloudProfile`.
	// +optional
	CloudProfileName *string `json:"cloudProfileName,omitempty"`
	// Domain of the cluster and DNS providers.
	// +optional
	DNS *DNS `json:"dns,omitempty"`
	// Extensions to enable, configure or disable.
	// +optional
	// +listType=map
	// +listMapKey=type
	Extensions []Extension `json:"extensions,omitempty"`
	// Hibernation: control plane and nodes scaled to zero.
	// +optional
	Hibernation *Hibernation `json:"hibernation,omitempty"`
	// Version and settings of the Kubernetes components.
	// +optional
	Kubernetes Kubernetes `json:"kubernetes,omitempty"`
	// Network plugin and CIDRs. Required for clusters with workers, except that CIDRs may come from
	// the Seed.
	// +optional
	Networking *Networking `json:"networking,omitempty"`
	// Time and scope of automatic changes by Gardener.
	// +optional
	Maintenance *Maintenance `json:"maintenance,omitempty"`
	// Monitoring and alerting.
	// +optional
	Monitoring *Monitoring `json:"monitoring,omitempty"`
	// Infrastructure and worker pools.
	Provider Provider `json:"provider"`
	// Purpose of the cluster: `evaluation`, `testing`, `development`, `production`, or, in
	// namespace `garden` only, `infrastructure`. It decides priority, monitoring and grace periods.
	// Default: `evaluation`.
	// +optional
	Purpose *ShootPurpose `json:"purpose,omitempty"`
	// Region of the infrastructure, as offered by the CloudProfile. Immutable.
	Region string `json:"region"`
	// Name of the SecretBinding with the infrastructure's credentials. Excludes
	// `credentialsBindingName`; forbidden from Kubernetes 1.34 on. Deprecated: use
	// `credentialsBindingName`.
	// +optional
	SecretBindingName *string `json:"secretBindingName,omitempty"`
	// Seed that runs the control plane. Set by the scheduler, or manually through the binding
	// subresource. Another name moves the control plane there.
	// +optional
	SeedName *string `json:"seedName,omitempty"`
	// Seeds that the scheduler may choose.
	// +optional
	SeedSelector *SeedSelector `json:"seedSelector,omitempty"`
	// Objects of the project's namespace that provider configurations refer to by name.
	// +optional
	// +listType=map
	// +listMapKey=name
	Resources []NamedResourceReference `json:"resources,omitempty"`
	// Taints of Seeds that the Shoot tolerates.
	// +optional
	// +listType=atomic
	Tolerations []Toleration `json:"tolerations,omitempty"`
	// Exposure class of the API server. Immutable.
	// +optional
	ExposureClassName *string `json:"exposureClassName,omitempty"`
	// Settings of system components within the cluster.
	// +optional
	SystemComponents *SystemComponents `json:"systemComponents,omitempty"`
	// Settings of the control plane as a whole.
	// +optional
	ControlPlane *ControlPlane `json:"controlPlane,omitempty"`
	// Scheduler that chooses the Seed. Immutable. Default: `default-scheduler`.
	// +optional
	SchedulerName *string `json:"schedulerName,omitempty"`
	// CloudProfile or NamespacedCloudProfile with the offer of the infrastructure.
	// +optional
	CloudProfile *CloudProfileReference `json:"cloudProfile,omitempty"`
	// Name of the CredentialsBinding with the infrastructure's credentials. It can be changed, not
	// removed.
	// +optional
	CredentialsBindingName *string `json:"credentialsBindingName,omitempty"`
	// Access restrictions of the cluster.
	// +optional
	// +listType=map
	// +listMapKey=name
	AccessRestrictions []AccessRestrictionWithOptions `json:"accessRestrictions,omitempty"`
}

// ShootPurpose is the purpose of a cluster.
// +kubebuilder:validation:Enum=evaluation;testing;development;production;infrastructure
type ShootPurpose string

const (
	// ShootPurposeEvaluation is for evaluations.
	ShootPurposeEvaluation ShootPurpose = "evaluation"
	// ShootPurposeTesting is for tests: no monitoring, any region.
	ShootPurposeTesting ShootPurpose = "testing"
	// ShootPurposeDevelopment is for development.
	ShootPurposeDevelopment ShootPurpose = "development"
	// ShootPurposeProduction is for production.
	ShootPurposeProduction ShootPurpose = "production"
	// ShootPurposeInfrastructure is for the landscape's own clusters, in namespace `garden`.
	ShootPurposeInfrastructure ShootPurpose = "infrastructure"
)

// CloudProfileReference refers to a CloudProfile or NamespacedCloudProfile.
type CloudProfileReference struct {
	// Kind: `CloudProfile` or `NamespacedCloudProfile`. Default: `CloudProfile`.
	// +optional
	// +kubebuilder:default=CloudProfile
	// +kubebuilder:validation:Enum=CloudProfile;NamespacedCloudProfile
	Kind string `json:"kind,omitempty"`
	// Name of the profile.
	Name string `json:"name"`
}

// SeedSelector selects Seeds.
type SeedSelector struct {
	// Labels that the Seed must have. An empty selector matches all.
	// +optional
	metav1.LabelSelector `json:",inline"`
	// Providers of Seeds that may be chosen; `*` means all. Unset: the provider of the Shoot.
	// +optional
	// +listType=atomic
	ProviderTypes []string `json:"providerTypes,omitempty"`
}

// ControlPlane holds settings of the control plane as a whole.
type ControlPlane struct {
	// High availability. It can be added later, never removed or changed.
	// +optional
	HighAvailability *HighAvailability `json:"highAvailability,omitempty"`
	// Zones of the Seed that the control plane runs in: one, or three with tolerance `zone`. Unset:
	// chosen by Gardener. Immutable, except that zones can be cleared or added.
	// +optional
	// +listType=atomic
	Zones []string `json:"zones,omitempty"`
}

// HighAvailability defines which failures a control plane survives.
type HighAvailability struct {
	// Failures that the control plane survives.
	FailureTolerance FailureTolerance `json:"failureTolerance"`
}

// FailureTolerance is the failure that a control plane survives.
type FailureTolerance struct {
	// Type of the failure: `node`, or `zone`, for which the Seed needs three zones.
	Type FailureToleranceType `json:"type"`
}

// FailureToleranceType is a type of failure.
// +kubebuilder:validation:Enum=node;zone
type FailureToleranceType string

const (
	// FailureToleranceTypeNode is the failure of a node.
	FailureToleranceTypeNode FailureToleranceType = "node"
	// FailureToleranceTypeZone is the failure of a zone.
	FailureToleranceTypeZone FailureToleranceType = "zone"
)
