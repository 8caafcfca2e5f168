// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
)

// Gardener holds settings of Gardener's components.
type Gardener struct {
	// Identity of the landscape. Immutable.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="clusterIdentity is immutable"
	ClusterIdentity string `json:"clusterIdentity"`
	// Settings of gardener-apiserver.
	// +optional
	APIServer *GardenerAPIServerConfig `json:"gardenerAPIServer,omitempty"`
	// Settings of gardener-admission-controller.
	// +optional
	AdmissionController *GardenerAdmissionControllerConfig `json:"gardenerAdmissionController,omitempty"`
	// Settings of gardener-controller-manager.
	// +optional
	ControllerManager *GardenerControllerManagerConfig `json:"gardenerControllerManager,omitempty"`
	// Settings of gardener-scheduler.
	// +optional
	Scheduler *GardenerSchedulerConfig `json:"gardenerScheduler,omitempty"`
	// Settings of gardener-dashboard. Unset: not installed.
	// +optional
	Dashboard *GardenerDashboardConfig `json:"gardenerDashboard,omitempty"`
	// Settings of gardener-discovery-server. Unset: not installed. It cannot be removed, nor can
	// its domain change: tokens name it as their issuer.
	// +optional
	DiscoveryServer *GardenerDiscoveryServerConfig `json:"gardenerDiscoveryServer,omitempty"`
	// Settings of the gardener-resource-manager of the virtual cluster.
	// +optional
	ResourceManager *GardenerResourceManagerConfig `json:"gardenerResourceManager,omitempty"`
}

// GardenerAPIServerConfig holds settings of gardener-apiserver.
type GardenerAPIServerConfig struct {
	gardencorev1beta1.KubernetesConfig `json:",inline"`
	// Admission plugins to enable, configure or disable.
	// +optional
	// +listType=map
	// +listMapKey=name
	AdmissionPlugins []gardencorev1beta1.AdmissionPlugin `json:"admissionPlugins,omitempty"`
	// Audit settings.
	// +optional
	AuditConfig *gardencorev1beta1.AuditConfig `json:"auditConfig,omitempty"`
	// Webhook that receives audit events. It has no effect without an audit policy.
	// +optional
	AuditWebhook *AuditWebhook `json:"auditWebhook,omitempty"`
	// Log levels.
	// +optional
	Logging *gardencorev1beta1.APIServerLogging `json:"logging,omitempty"`
	// Limits on requests.
	// +optional
	Requests *gardencorev1beta1.APIServerRequests `json:"requests,omitempty"`
	// Sizes of watch caches. The server sizes them itself; only 0, which disables a cache, has an
	// effect.
	// +optional
	WatchCacheSizes *gardencorev1beta1.WatchCacheSizes `json:"watchCacheSizes,omitempty"`
	// Encryption of data in etcd. Only resources of Gardener's own API groups; the provider must be
	// kube-apiserver's, which is its default.
	// +optional
	EncryptionConfig *gardencorev1beta1.EncryptionConfig `json:"encryptionConfig,omitempty"`
	// Share of HTTP/2 requests after which the client is asked to reconnect, to balance the load: 0
	// to 0.02. Default: 0.
	// +optional
	GoAwayChance *float64 `json:"goAwayChance,omitempty"`
	// Maximum lifetime of an admin kubeconfig for a Shoot, at least 1h. Default: 24h.
	// +optional
	// +kubebuilder:validation:Format=duration
	ShootAdminKubeconfigMaxExpiration *metav1.Duration `json:"shootAdminKubeconfigMaxExpiration,omitempty"`
}

// GardenerAdmissionControllerConfig holds settings of gardener-admission-controller.
type GardenerAdmissionControllerConfig struct {
	// Log level: `debug`, `info` or `error`. Default: `info`.
	// +optional
	// +kubebuilder:default=info
	// +kubebuilder:validation:Enum=debug;info;error
	LogLevel *string `json:"logLevel,omitempty"`
	// Limits on the size of objects.
	// +optional
	ResourceAdmissionConfiguration *ResourceAdmissionConfiguration `json:"resourceAdmissionConfiguration,omitempty"`
}

// ResourceAdmissionConfiguration holds limits on the size of objects.
type ResourceAdmissionConfiguration struct {
	// Limits by resource.
	// +listType=atomic
	Limits []ResourceLimit `json:"limits"`
	// Users, groups and service accounts that are exempt from the limits.
	// +optional
	// +listType=atomic
	UnrestrictedSubjects []rbacv1.Subject `json:"unrestrictedSubjects,omitempty"`
	// Action for objects that are too large: `block` or `log`. Default: `block`.
	// +optional
	OperationMode *ResourceAdmissionWebhookMode `json:"operationMode,omitempty"`
}

// ResourceAdmissionWebhookMode is the action for objects that are too large.
// +kubebuilder:validation:Enum=block;log
type ResourceAdmissionWebhookMode string

const (
	// AdmissionModeBlock rejects objects that are too large.
	AdmissionModeBlock ResourceAdmissionWebhookMode = "block"
	// AdmissionModeLog only logs objects that are too large.
	AdmissionModeLog ResourceAdmissionWebhookMode = "log"
)

// WildcardAll means all groups, versions or resources of a ResourceLimit.
const WildcardAll = "*"

// ResourceLimit is a limit for some resources.
type ResourceLimit struct {
	// API groups; `*` means all.
	// +optional
	// +listType=atomic
	APIGroups []string `json:"apiGroups,omitempty"`
	// API versions; `*` means all.
	// +optional
	// +listType=atomic
	APIVersions []string `json:"apiVersions,omitempty"`
	// Resources, in plural and lower case; `*` means all.
	// +kubebuilder:validation:MinItems=1
	// +listType=atomic
	Resources []string `json:"resources"`
	// Maximum size of an object.
	// +optional
	Size *resource.Quantity `json:"size,omitempty"`
	// Maximum number of objects. Only for cluster-scoped resources.
	// +optional
	Count *int64 `json:"count,omitempty"`
}

// GardenerControllerManagerConfig holds settings of gardener-controller-manager.
type GardenerControllerManagerConfig struct {
	gardencorev1beta1.KubernetesConfig `json:",inline"`
	// Quotas of Projects. The first matching quota applies.
	// +optional
	// +listType=atomic
	DefaultProjectQuotas []ProjectQuotaConfiguration `json:"defaultProjectQuotas,omitempty"`
	// Log level: `debug`, `info` or `error`. Default: `info`.
	// +optional
	// +kubebuilder:default=info
	// +kubebuilder:validation:Enum=debug;info;error
	LogLevel *string `json:"logLevel,omitempty"`
}

// ProjectQuotaConfiguration is a quota for some Projects.
type ProjectQuotaConfiguration struct {
	// ResourceQuota for the namespace of the Project.
	Config corev1.ResourceQuota `json:"config"`
	// Labels of the Projects. Unset: all.
	// +optional
	ProjectSelector *metav1.LabelSelector `json:"projectSelector,omitempty"`
}

// GardenerSchedulerConfig holds settings of gardener-scheduler.
type GardenerSchedulerConfig struct {
	gardencorev1beta1.KubernetesConfig `json:",inline"`
	// Log level: `debug`, `info` or `error`. Default: `info`.
	// +optional
	// +kubebuilder:default=info
	// +kubebuilder:validation:Enum=debug;info;error
	LogLevel *string `json:"logLevel,omitempty"`
	// Seeds to choose from: `SameRegion` (only Seeds of the Shoot's region) or `MinimalDistance`
	// (Seeds of the nearest region). Default: `SameRegion`.
	// +optional
	Strategy *CandidateDeterminationStrategy `json:"strategy,omitempty"`
}

// CandidateDeterminationStrategy is a way of choosing Seeds.
// +kubebuilder:validation:Enum=SameRegion;MinimalDistance
type CandidateDeterminationStrategy string

const (
	// SameRegion chooses among Seeds of the Shoot's region.
	SameRegion CandidateDeterminationStrategy = "SameRegion"
	// MinimalDistance chooses among Seeds of the nearest region.
	MinimalDistance CandidateDeterminationStrategy = "MinimalDistance"
)

// GardenerDiscoveryServerConfig holds settings of gardener-discovery-server.
type GardenerDiscoveryServerConfig struct {
	// Domain of the server. Cannot change. Default: `discovery.<first ingress domain>`.
	// +optional
	Domain *DNSDomain `json:"domain,omitempty"`
	// Name of a Secret, in namespace `garden`, with the server certificate. Default: the Secret
	// with label `gardener.cloud/role=garden-cert`, otherwise a certificate signed by Gardener.
	// +optional
	TLSSecretName *string `json:"tlsSecretName,omitempty"`
}

// GardenerResourceManagerConfig holds settings of the gardener-resource-manager of the virtual
// cluster.
type GardenerResourceManagerConfig struct {
	// Additional namespaces that the resource manager works in.
	// +optional
	// +listType=atomic
	AdditionalTargetNamespaces []string `json:"additionalTargetNamespaces,omitempty"`
}
