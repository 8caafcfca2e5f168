// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,path=controllerregistrations,singular=controllerregistration,shortName=ctrlreg,categories=gardener
// +kubebuilder:printcolumn:name="Resources",type=string,JSONPath=`.spec.resources[*].type`,description="Types that the extension handles."
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`,description="Time since creation."

// ControllerRegistration registers the kinds of extension objects that an extension handles.
type ControllerRegistration struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// Desired state of the ControllerRegistration. Immutable once the object is being deleted.
	// +optional
	Spec ControllerRegistrationSpec `json:"spec,omitempty"`
}

// +kubebuilder:object:root=true

// ControllerRegistrationList is a list of ControllerRegistrations.
type ControllerRegistrationList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// Items of the list.
	Items []ControllerRegistration `json:"items"`
}

// ControllerRegistrationSpec is the desired state of a ControllerRegistration.
type ControllerRegistrationSpec struct {
	// Kinds and types of extension objects that the extension handles; each pair once.
	// +optional
	// +listType=atomic
	Resources []ControllerResource `json:"resources,omitempty"`
	// Installation of the extension. Unset: it is installed by other means.
	// +optional
	Deployment *ControllerRegistrationDeployment `json:"deployment,omitempty"`
}

// ControllerResource is a kind and type of extension objects.
type ControllerResource struct {
	// Kind of the group extensions.gardener.cloud, for example `Infrastructure`.
	// +kubebuilder:validation:Enum=BackupBucket;BackupEntry;Bastion;ContainerRuntime;ControlPlane;DNSRecord;Extension;Infrastructure;Network;OperatingSystemConfig;SelfHostedShootExposure;Worker
	Kind string `json:"kind"`
	// Type of the objects, for example `gcp` or `gardenlinux`.
	Type string `json:"type"`
	// Timeout for an object. For kind `Extension` only. Default there: 3m.
	// +optional
	ReconcileTimeout *metav1.Duration `json:"reconcileTimeout,omitempty"`
	// Whether the extension is responsible for the objects; exactly one extension is for a kind and
	// type. Immutable. Default: true.
	// +optional
	// +kubebuilder:default=true
	Primary *bool `json:"primary,omitempty"`
	// Phases in which the objects are handled. For kind `Extension` only.
	// +optional
	Lifecycle *ControllerResourceLifecycle `json:"lifecycle,omitempty"`
	// Whether the extension can serve Shoots without workers. For kind `Extension` only. Default:
	// false.
	// +optional
	WorkerlessSupported *bool `json:"workerlessSupported,omitempty"`
	// Types of clusters that get the extension by default; each is also in `clusterCompatibility`.
	// For kind `Extension` only.
	// +optional
	// +listType=atomic
	AutoEnable []ClusterType `json:"autoEnable,omitempty"`
	// Types of clusters that the extension supports. For kind `Extension` only. Default there:
	// `shoot`.
	// +optional
	// +listType=atomic
	ClusterCompatibility []ClusterType `json:"clusterCompatibility,omitempty"`
	// Whether the extension is notified of every change of the healthy control plane nodes. For
	// kind `SelfHostedShootExposure` only. Default there: true.
	// +optional
	ContinuousEndpointUpdate *bool `json:"continuousEndpointUpdate,omitempty"`
}

// ClusterType is a type of cluster that an extension serves. A ControllerRegistration allows
// `shoot` and `seed`.
// +kubebuilder:validation:Enum=garden;seed;shoot
type ClusterType string

const (
	// ClusterTypeGarden is the runtime cluster of the Garden; only in Extensions of the operator.
	ClusterTypeGarden ClusterType = "garden"
	// ClusterTypeSeed is a Seed.
	ClusterTypeSeed ClusterType = "seed"
	// ClusterTypeShoot is a Shoot.
	ClusterTypeShoot ClusterType = "shoot"
)

// ControllerResourceLifecycle defines when objects of kind `Extension` are handled.
type ControllerResourceLifecycle struct {
	// Phase of creation and update: `BeforeKubeAPIServer`, `AfterKubeAPIServer` or `AfterWorker`.
	// Default: `AfterKubeAPIServer`.
	// +optional
	// +kubebuilder:validation:Enum=BeforeKubeAPIServer;AfterKubeAPIServer;AfterWorker
	Reconcile *ControllerResourceLifecycleStrategy `json:"reconcile,omitempty"`
	// Phase of deletion: `BeforeKubeAPIServer` or `AfterKubeAPIServer`. Default:
	// `BeforeKubeAPIServer`.
	// +optional
	// +kubebuilder:validation:Enum=BeforeKubeAPIServer;AfterKubeAPIServer
	Delete *ControllerResourceLifecycleStrategy `json:"delete,omitempty"`
	// Phase of migration: `BeforeKubeAPIServer` or `AfterKubeAPIServer`. Default:
	// `BeforeKubeAPIServer`.
	// +optional
	// +kubebuilder:validation:Enum=BeforeKubeAPIServer;AfterKubeAPIServer
	Migrate *ControllerResourceLifecycleStrategy `json:"migrate,omitempty"`
}

// ControllerResourceLifecycleStrategy is a phase in the flow of a Shoot.
type ControllerResourceLifecycleStrategy string

const (
	// BeforeKubeAPIServer is the phase before the API server is handled.
	BeforeKubeAPIServer ControllerResourceLifecycleStrategy = "BeforeKubeAPIServer"
	// AfterKubeAPIServer is the phase after the API server was handled.
	AfterKubeAPIServer ControllerResourceLifecycleStrategy = "AfterKubeAPIServer"
	// AfterWorker is the phase after the workers were handled.
	AfterWorker ControllerResourceLifecycleStrategy = "AfterWorker"
)

// ControllerRegistrationDeployment defines how an extension is installed.
type ControllerRegistrationDeployment struct {
	// Installation policy on Seeds: `OnDemand`, `Always` or `AlwaysExceptNoShoots`. Default:
	// `OnDemand`.
	// +optional
	// +kubebuilder:default=OnDemand
	Policy *ControllerDeploymentPolicy `json:"policy,omitempty"`
	// Labels of the Seeds that may get the extension. Unset: all. Not allowed with primary
	// resources.
	// +optional
	SeedSelector *metav1.LabelSelector `json:"seedSelector,omitempty"`
	// ControllerDeployments of the extension; at most one.
	// +optional
	// +listType=atomic
	DeploymentRefs []DeploymentRef `json:"deploymentRefs,omitempty"`
}

// DeploymentRef refers to a ControllerDeployment.
type DeploymentRef struct {
	// Name of the ControllerDeployment.
	Name string `json:"name"`
}

// ControllerDeploymentPolicy defines when an extension is installed.
// +kubebuilder:validation:Enum=OnDemand;Always;AlwaysExceptNoShoots
type ControllerDeploymentPolicy string

const (
	// ControllerDeploymentPolicyOnDemand installs the extension where objects need it.
	ControllerDeploymentPolicyOnDemand ControllerDeploymentPolicy = "OnDemand"
	// ControllerDeploymentPolicyAlways installs the extension everywhere.
	ControllerDeploymentPolicyAlways ControllerDeploymentPolicy = "Always"
	// ControllerDeploymentPolicyAlwaysExceptNoShoots installs the extension on every Seed that has
	// Shoots.
	ControllerDeploymentPolicyAlwaysExceptNoShoots ControllerDeploymentPolicy = "AlwaysExceptNoShoots"
)
