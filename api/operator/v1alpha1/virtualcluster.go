// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
)

// VirtualCluster is the cluster that serves Gardener's API. It has no nodes.
type VirtualCluster struct {
	// Settings of the control plane as a whole.
	// +optional
	ControlPlane *ControlPlane `json:"controlPlane,omitempty"`
	// Domains of the cluster.
	DNS DNS `json:"dns"`
	// etcds of the cluster.
	// +optional
	ETCD *ETCD `json:"etcd,omitempty"`
	// Gardener's components.
	Gardener Gardener `json:"gardener"`
	// Version and settings of the Kubernetes components.
	Kubernetes Kubernetes `json:"kubernetes"`
	// Time of maintenance.
	Maintenance Maintenance `json:"maintenance"`
	// Networks of the cluster.
	Networking Networking `json:"networking"`
}

// ControlPlane holds settings of the control plane as a whole.
type ControlPlane struct {
	// High availability: three members of each etcd and at least three API servers. Cannot be
	// removed.
	// +optional
	HighAvailability *HighAvailability `json:"highAvailability,omitempty"`
}

// HighAvailability makes the control plane highly available. It has no settings.
type HighAvailability struct{}

// DNS holds the domains of the virtual cluster.
type DNS struct {
	// Domains of the cluster. Its API server is at `api.<domain>`, the dashboard below the ingress
	// domains. At least one is required; the first one cannot change.
	// +optional
	// +kubebuilder:validation:MinItems=1
	// +listType=atomic
	Domains []DNSDomain `json:"domains,omitempty"`
}

// Networking holds the networks of the virtual cluster.
type Networking struct {
	// CIDRs of the service network: one, or one per IP family. Entries can be appended, not
	// removed. They must not overlap networks of the runtime cluster.
	// +kubebuilder:validation:MinItems=1
	// +listType=atomic
	// +kubebuilder:validation:items:Format=cidr
	Services []string `json:"services"`
}

// Maintenance defines when maintenance takes place.
type Maintenance struct {
	// Time of day at which maintenance takes place.
	TimeWindow gardencorev1beta1.MaintenanceTimeWindow `json:"timeWindow"`
}

// ETCD holds settings of the etcds.
type ETCD struct {
	// etcd for all resources except events.
	// +optional
	// +kubebuilder:validation:XValidation:rule="!has(oldSelf.backup) || has(self.backup)",message="backup cannot be removed",fieldPath=".backup",reason="FieldValueForbidden"
	Main *ETCDMain `json:"main,omitempty"`
	// etcd for events.
	// +optional
	Events *ETCDEvents `json:"events,omitempty"`
}

// ETCDMain holds settings of the etcd for all resources except events.
type ETCDMain struct {
	// Limits of automatic scaling. Minimum memory: 300M.
	// +optional
	Autoscaling *gardencorev1beta1.ControlPlaneAutoscaling `json:"autoscaling,omitempty"`
	// Object store for backups. Unset: no backups. Cannot be removed.
	// +optional
	// +kubebuilder:validation:XValidation:rule="has(self.bucketName) == has(oldSelf.bucketName)",message="bucketName is immutable",fieldPath=".bucketName"
	Backup *Backup `json:"backup,omitempty"`
	// Volume of each member. Unset: 25Gi.
	// +optional
	Storage *Storage `json:"storage,omitempty"`
}

// ETCDEvents holds settings of the etcd for events.
type ETCDEvents struct {
	// Limits of automatic scaling. Minimum memory: 60M.
	// +optional
	Autoscaling *gardencorev1beta1.ControlPlaneAutoscaling `json:"autoscaling,omitempty"`
	// Volume of each member. Unset: 10Gi.
	// +optional
	Storage *Storage `json:"storage,omitempty"`
}

// Storage configures a volume. Changes have no effect once the volume exists.
type Storage struct {
	// Size of the volume. Default: 10Gi.
	// +optional
	// +kubebuilder:default="10Gi"
	Capacity *resource.Quantity `json:"capacity,omitempty"`
	// StorageClass of the volume. Default: the default of the cluster.
	// +optional
	ClassName *string `json:"className,omitempty"`
}

// Backup is an object store for backups.
type Backup struct {
	// Provider of the object store. Immutable.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="provider is immutable"
	Provider string `json:"provider"`
	// Name of the bucket, or `bucket/prefix` for a part of it. Immutable. Default: a bucket
	// `garden-<UID>` that Gardener creates.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="bucketName is immutable"
	BucketName *string `json:"bucketName,omitempty"`
	// Region of the object store. Immutable. Default: the region of the runtime cluster.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="region is immutable"
	Region *string `json:"region,omitempty"`
	// Configuration in the provider's own API.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	ProviderConfig *runtime.RawExtension `json:"providerConfig,omitempty"`
	// Secret, in namespace `garden`, with the credentials.
	SecretRef corev1.LocalObjectReference `json:"secretRef"`
}

// Kubernetes holds version and settings of the Kubernetes components.
type Kubernetes struct {
	// Settings of kube-apiserver.
	// +optional
	KubeAPIServer *KubeAPIServerConfig `json:"kubeAPIServer,omitempty"`
	// Settings of kube-controller-manager.
	// +optional
	KubeControllerManager *KubeControllerManagerConfig `json:"kubeControllerManager,omitempty"`
	// Kubernetes version, 1.32 to 1.36. It can be raised by one minor version at a time, never
	// lowered.
	// +kubebuilder:validation:MinLength=1
	Version string `json:"version"`
}

// KubeAPIServerConfig holds settings of kube-apiserver.
type KubeAPIServerConfig struct {
	// Settings that are shared with kube-apiservers of Shoots.
	// +optional
	*gardencorev1beta1.KubeAPIServerConfig `json:",inline"`
	// Webhook that receives audit events. It has no effect without an audit policy.
	// +optional
	AuditWebhook *AuditWebhook `json:"auditWebhook,omitempty"`
	// Authentication by a webhook.
	// +optional
	Authentication *Authentication `json:"authentication,omitempty"`
	// Resources stored in the etcd for events, in addition to `events`. A change does not move
	// stored data.
	// +optional
	// +listType=atomic
	ResourcesToStoreInETCDEvents []GroupResource `json:"resourcesToStoreInETCDEvents,omitempty"`
	// Additional server certificates.
	// +optional
	SNI *SNI `json:"sni,omitempty"`
}

// AuditWebhook is a webhook that receives audit events.
type AuditWebhook struct {
	// Maximum number of events in a batch. Default: 30.
	// +optional
	// +kubebuilder:default=30
	// +kubebuilder:validation:Minimum=1
	BatchMaxSize *int32 `json:"batchMaxSize,omitempty"`
	// Name of a Secret, in namespace `garden`, whose key `kubeconfig` gives access to the webhook.
	// +kubebuilder:validation:MinLength=1
	KubeconfigSecretName string `json:"kubeconfigSecretName"`
	// API version of the events. Default: `audit.k8s.io/v1`.
	// +optional
	// +kubebuilder:default=audit.k8s.io/v1
	// +kubebuilder:validation:Enum=audit.k8s.io/v1
	Version *string `json:"version,omitempty"`
}

// Authentication holds ways of authentication.
type Authentication struct {
	// Webhook that tokens are sent to.
	// +optional
	Webhook *AuthenticationWebhook `json:"webhook,omitempty"`
}

// AuthenticationWebhook is a webhook that tokens are sent to.
type AuthenticationWebhook struct {
	// Time for which answers are cached.
	// +optional
	// +kubebuilder:validation:Format=duration
	CacheTTL *metav1.Duration `json:"cacheTTL,omitempty"`
	// Name of a Secret, in namespace `garden`, whose key `kubeconfig` gives access to the webhook.
	// +kubebuilder:validation:MinLength=1
	KubeconfigSecretName string `json:"kubeconfigSecretName"`
	// API version of the review: `v1alpha1`, `v1beta1` or `v1`. Default: `v1beta1`.
	// +optional
	// +kubebuilder:default=v1beta1
	// +kubebuilder:validation:Enum=v1alpha1;v1beta1;v1
	Version *string `json:"version,omitempty"`
}

// GroupResource is a resource of an API group.
type GroupResource struct {
	// API group. The core group is not allowed.
	// +kubebuilder:validation:MinLength=1
	Group string `json:"group"`
	// Resource, in plural and lower case.
	// +kubebuilder:validation:MinLength=1
	Resource string `json:"resource"`
}

// SNI holds an additional server certificate.
type SNI struct {
	// Name of a Secret, in namespace `garden`, with certificate and key. Default: the Secret with
	// label `gardener.cloud/role=garden-cert`.
	// +optional
	SecretName *string `json:"secretName,omitempty"`
	// Domains that the certificate is served for, optionally with a leading wildcard. At least one
	// is required; none is taken from the certificate. The dashboard calls the API server at the
	// first one. `api.` of the first domain of `virtualCluster.dns` is not allowed: gardenlets
	// expect a certificate of the garden's own CA there.
	// +optional
	// +listType=atomic
	DomainPatterns []string `json:"domainPatterns,omitempty"`
}

// KubeControllerManagerConfig holds settings of kube-controller-manager.
type KubeControllerManagerConfig struct {
	// Settings that are shared with kube-controller-managers of Shoots. Settings about nodes and
	// pods are not allowed.
	// +optional
	*gardencorev1beta1.KubeControllerManagerConfig `json:",inline"`
	// Maximum lifetime of signed certificates. Default: 48h.
	// +optional
	// +kubebuilder:default="48h"
	// +kubebuilder:validation:Format=duration
	CertificateSigningDuration *metav1.Duration `json:"certificateSigningDuration,omitempty"`
}
