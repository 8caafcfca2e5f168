// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// KubeAPIServerConfig holds settings of kube-apiserver.
type KubeAPIServerConfig struct {
	KubernetesConfig `json:",inline"`
	// Admission plugins to enable, configure or disable, in addition to those that Gardener needs.
	// +optional
	// +listType=map
	// +listMapKey=name
	AdmissionPlugins []AdmissionPlugin `json:"admissionPlugins,omitempty"`
	// Audiences of service account tokens: a token must name one. Default: `kubernetes`; `gardener`
	// is always added.
	// +optional
	// +listType=atomic
	APIAudiences []string `json:"apiAudiences,omitempty"`
	// Audit settings.
	// +optional
	AuditConfig *AuditConfig `json:"auditConfig,omitempty"`
	// APIs to enable or disable, by group and version, for example `batch/v1beta1`.
	// +optional
	RuntimeConfig map[string]bool `json:"runtimeConfig,omitempty"`
	// Settings of service account tokens.
	// +optional
	ServiceAccountConfig *ServiceAccountConfig `json:"serviceAccountConfig,omitempty"`
	// Sizes of watch caches. The server sizes them itself; only 0, which disables a cache, has an
	// effect.
	// +optional
	WatchCacheSizes *WatchCacheSizes `json:"watchCacheSizes,omitempty"`
	// Limits on requests.
	// +optional
	Requests *APIServerRequests `json:"requests,omitempty"`
	// Whether requests without credentials are accepted as `system:anonymous`. Forbidden from
	// Kubernetes 1.35 on. Default: false. Deprecated: use structured authentication.
	// +optional
	EnableAnonymousAuthentication *bool `json:"enableAnonymousAuthentication,omitempty"`
	// Time for which events are retained, at most 24h. Default: 1h.
	// +optional
	// +kubebuilder:validation:Format=duration
	EventTTL *metav1.Duration `json:"eventTTL,omitempty"`
	// Log levels.
	// +optional
	Logging *APIServerLogging `json:"logging,omitempty"`
	// Seconds that pods stay on a node that is not ready, unless they set a toleration. Default:
	// 300.
	// +optional
	DefaultNotReadyTolerationSeconds *int64 `json:"defaultNotReadyTolerationSeconds,omitempty"`
	// Seconds that pods stay on an unreachable node, unless they set a toleration. Default: 300.
	// +optional
	DefaultUnreachableTolerationSeconds *int64 `json:"defaultUnreachableTolerationSeconds,omitempty"`
	// Encryption of data in etcd.
	// +optional
	EncryptionConfig *EncryptionConfig `json:"encryptionConfig,omitempty"`
	// Structured authentication.
	// +optional
	StructuredAuthentication *StructuredAuthentication `json:"structuredAuthentication,omitempty"`
	// Structured authorization.
	// +optional
	StructuredAuthorization *StructuredAuthorization `json:"structuredAuthorization,omitempty"`
	// Limits of automatic scaling. Minimum requests: cpu 20m, memory 200M.
	// +optional
	Autoscaling *ControlPlaneAutoscaling `json:"autoscaling,omitempty"`
	// Minimum TLS version: `VersionTLS12` or `VersionTLS13`. Default: kube-apiserver's own.
	// +optional
	TLSMinVersion *TLSVersion `json:"tlsMinVersion,omitempty"`
}

// TLSVersion is a version of TLS, as kube-apiserver names it.
// +kubebuilder:validation:Enum=VersionTLS12;VersionTLS13
type TLSVersion string

const (
	// TLSVersion12 is TLS 1.2.
	TLSVersion12 TLSVersion = "VersionTLS12"
	// TLSVersion13 is TLS 1.3.
	TLSVersion13 TLSVersion = "VersionTLS13"
)

// AdmissionPlugin is an admission plugin with settings.
type AdmissionPlugin struct {
	// Name of the plugin; unique within the list.
	Name string `json:"name"`
	// Configuration in the plugin's own API.
	// +optional
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	Config *runtime.RawExtension `json:"config,omitempty"`
	// True disables the plugin. Plugins that Gardener needs cannot be disabled. Default: false.
	// +optional
	Disabled *bool `json:"disabled,omitempty"`
	// Name of a Secret whose key `kubeconfig` gives the plugin access to its backend.
	// +optional
	KubeconfigSecretName *string `json:"kubeconfigSecretName,omitempty"`
}

// AuditConfig holds audit settings.
type AuditConfig struct {
	// Policy that selects the recorded events.
	// +optional
	AuditPolicy *AuditPolicy `json:"auditPolicy,omitempty"`
}

// AuditPolicy selects the recorded events.
type AuditPolicy struct {
	// ConfigMap, in the same namespace, whose key `policy` holds the audit policy.
	// +optional
	ConfigMapRef *corev1.ObjectReference `json:"configMapRef,omitempty"`
}

// ServiceAccountConfig holds settings of service account tokens.
type ServiceAccountConfig struct {
	// Issuer of new tokens, an https URL. Default: the address of the API server.
	// +optional
	Issuer *string `json:"issuer,omitempty"`
	// Whether tokens mounted in pods are valid for up to a year, so that old clients keep working.
	// Default: true.
	// +optional
	ExtendTokenExpiration *bool `json:"extendTokenExpiration,omitempty"`
	// Maximum lifetime of a token: 720h to 2160h (30 to 90 days).
	// +optional
	// +kubebuilder:validation:Format=duration
	MaxTokenExpiration *metav1.Duration `json:"maxTokenExpiration,omitempty"`
	// Additional issuers whose tokens are accepted.
	// +optional
	// +listType=atomic
	AcceptedIssuers []string `json:"acceptedIssuers,omitempty"`
}

// WatchCacheSizes holds sizes of watch caches.
type WatchCacheSizes struct {
	// Size for unlisted resources. Forbidden from Kubernetes 1.35 on. Deprecated.
	// +optional
	Default *int32 `json:"default,omitempty"`
	// Sizes by resource.
	// +optional
	// +listType=atomic
	Resources []ResourceWatchCacheSize `json:"resources,omitempty"`
}

// ResourceWatchCacheSize is the size of the watch cache of one resource.
type ResourceWatchCacheSize struct {
	// API group of the resource. Unset: the core group.
	// +optional
	APIGroup *string `json:"apiGroup,omitempty"`
	// Resource, in plural and lower case, for example `secrets`.
	Resource string `json:"resource"`
	// Size, as a number of changes.
	CacheSize int32 `json:"size"`
}

// APIServerRequests holds limits on requests.
type APIServerRequests struct {
	// Maximum number of concurrent reading requests, at most 5000. Default: 400.
	// +optional
	MaxNonMutatingInflight *int32 `json:"maxNonMutatingInflight,omitempty"`
	// Maximum number of concurrent writing requests, at most 2500. Default: 200.
	// +optional
	MaxMutatingInflight *int32 `json:"maxMutatingInflight,omitempty"`
}

// APIServerLogging holds log levels.
type APIServerLogging struct {
	// Log level. Default: 2.
	// +optional
	Verbosity *int32 `json:"verbosity,omitempty"`
	// Level at which requests are logged.
	// +optional
	HTTPAccessVerbosity *int32 `json:"httpAccessVerbosity,omitempty"`
}

// EncryptionConfig configures the encryption of data in etcd. Resources and provider cannot change
// at the same time, nor during a rotation of the key.
type EncryptionConfig struct {
	// Resources that are encrypted in addition to Secrets, as `resource` or `resource.group`, in
	// plural and lower case. Wildcards are not allowed.
	// +optional
	// +listType=atomic
	Resources []string `json:"resources,omitempty"`
	// Encryption provider.
	// +optional
	Provider EncryptionProvider `json:"provider,omitempty"`
}

// EncryptionProvider is the provider that encrypts data.
type EncryptionProvider struct {
	// Type of the provider: `aescbc`, `aesgcm` (requires automatic rotation of the key) or
	// `secretbox`. Default: `aescbc`.
	// +optional
	Type *EncryptionProviderType `json:"type,omitempty"`
}

// EncryptionProviderType is a type of encryption.
//
// It has no enum: upstream reports an unknown value only where it is first set (see the rules of
// package schemas).
type EncryptionProviderType string

const (
	// EncryptionProviderTypeAESCBC is AES in CBC mode.
	EncryptionProviderTypeAESCBC EncryptionProviderType = "aescbc"
	// EncryptionProviderTypeAESGCM is AES in GCM mode.
	EncryptionProviderTypeAESGCM EncryptionProviderType = "aesgcm"
	// EncryptionProviderTypeSecretbox is XSalsa20 with Poly1305.
	EncryptionProviderTypeSecretbox EncryptionProviderType = "secretbox"
)

// StructuredAuthentication holds settings of structured authentication.
type StructuredAuthentication struct {
	// ConfigMap, in the same namespace, whose key `config.yaml` holds the
	// AuthenticationConfiguration.
	ConfigMapName string `json:"configMapName"`
}

// StructuredAuthorization holds settings of structured authorization.
type StructuredAuthorization struct {
	// ConfigMap, in the same namespace, whose key `config.yaml` holds the
	// AuthorizationConfiguration.
	ConfigMapName string `json:"configMapName"`
	// Secrets with kubeconfigs for the authorizers.
	// +optional
	// +listType=atomic
	Kubeconfigs []AuthorizerKubeconfigReference `json:"kubeconfigs,omitempty"`
}

// AuthorizerKubeconfigReference is a kubeconfig for one authorizer.
type AuthorizerKubeconfigReference struct {
	// Name of the authorizer in the AuthorizationConfiguration.
	AuthorizerName string `json:"authorizerName"`
	// Name of a Secret whose key `kubeconfig` holds the kubeconfig.
	SecretName string `json:"secretName"`
}
