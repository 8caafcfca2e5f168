package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// KubeAPIServerConfig holds settings of kube-apiserver.
type KubeAPIServerConfig struct {
	KubernetesConfig `json:",inline"`
	// Admission plugins to be switched on, configured or off, besides those that Gardener needs.
	// +optional
	// +listType=map
	// +listMapKey=name
	AdmissionPlugins []AdmissionPlugin `json:"admissionPlugins,omitempty"`
	// Audiences of which a service account token has to name one. Default: `kubernetes`; `gardener` is always added.
	// +optional
	// +listType=atomic
	APIAudiences []string `json:"apiAudiences,omitempty"`
	// Audit.
	// +optional
	AuditConfig *AuditConfig `json:"auditConfig,omitempty"`
	// APIs to be switched on or off, by group and version, for example `batch/v1beta1`.
	// +optional
	RuntimeConfig map[string]bool `json:"runtimeConfig,omitempty"`
	// Service account tokens.
	// +optional
	ServiceAccountConfig *ServiceAccountConfig `json:"serviceAccountConfig,omitempty"`
	// Watch caches. The server sizes them itself; only 0, which switches a cache off, has an effect.
	// +optional
	WatchCacheSizes *WatchCacheSizes `json:"watchCacheSizes,omitempty"`
	// Limits of requests.
	// +optional
	Requests *APIServerRequests `json:"requests,omitempty"`
	// Whether requests without credentials are let in as `system:anonymous`. Forbidden from Kubernetes 1.35 on. Default:
	// false. Deprecated: use structured authentication.
	// +optional
	EnableAnonymousAuthentication *bool `json:"enableAnonymousAuthentication,omitempty"`
	// How long events are kept, at most 24h. Default: 1h.
	// +optional
	// +kubebuilder:validation:Format=duration
	EventTTL *metav1.Duration `json:"eventTTL,omitempty"`
	// Log levels.
	// +optional
	Logging *APIServerLogging `json:"logging,omitempty"`
	// How long pods stay on a node that is not ready, in seconds, unless they say otherwise. Default: 300.
	// +optional
	DefaultNotReadyTolerationSeconds *int64 `json:"defaultNotReadyTolerationSeconds,omitempty"`
	// How long pods stay on a node that is unreachable, in seconds, unless they say otherwise. Default: 300.
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
	// Limits of automatic scaling. Least requests: cpu 20m, memory 200M.
	// +optional
	Autoscaling *ControlPlaneAutoscaling `json:"autoscaling,omitempty"`
	// Least TLS version: `VersionTLS12` or `VersionTLS13`. Default: that of kube-apiserver.
	// +optional
	TLSMinVersion *TLSVersion `json:"tlsMinVersion,omitempty"`
}

// TLSVersion is a version of TLS, as kube-apiserver names it.
// +kubebuilder:validation:Enum=VersionTLS12;VersionTLS13
type TLSVersion string

const (
	// TLSVersion12 stands for TLS 1.2.
	TLSVersion12 TLSVersion = "VersionTLS12"
	// TLSVersion13 stands for TLS 1.3.
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
	// True switches the plugin off. Plugins that Gardener needs cannot be switched off. Default: false.
	// +optional
	Disabled *bool `json:"disabled,omitempty"`
	// Name of a Secret whose key `kubeconfig` the plugin reaches its backend with.
	// +optional
	KubeconfigSecretName *string `json:"kubeconfigSecretName,omitempty"`
}

// AuditConfig holds settings of audit.
type AuditConfig struct {
	// What is recorded.
	// +optional
	AuditPolicy *AuditPolicy `json:"auditPolicy,omitempty"`
}

// AuditPolicy says what is recorded.
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
	// Whether tokens mounted in pods live up to a year, so that old clients keep working. Default: true.
	// +optional
	ExtendTokenExpiration *bool `json:"extendTokenExpiration,omitempty"`
	// Longest life of a token: 720h to 2160h (30 to 90 days).
	// +optional
	// +kubebuilder:validation:Format=duration
	MaxTokenExpiration *metav1.Duration `json:"maxTokenExpiration,omitempty"`
	// Further issuers whose tokens are accepted.
	// +optional
	// +listType=atomic
	AcceptedIssuers []string `json:"acceptedIssuers,omitempty"`
}

// WatchCacheSizes holds sizes of watch caches.
type WatchCacheSizes struct {
	// Size for resources that are not listed. Forbidden from Kubernetes 1.35 on. Deprecated.
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

// APIServerRequests holds limits of requests.
type APIServerRequests struct {
	// How many reading requests are served at a time, at most 5000. Default: 400.
	// +optional
	MaxNonMutatingInflight *int32 `json:"maxNonMutatingInflight,omitempty"`
	// How many writing requests are served at a time, at most 2500. Default: 200.
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

// EncryptionConfig says what is encrypted in etcd, and how. Resources and provider may not change at once, nor while a
// rotation of the key runs.
type EncryptionConfig struct {
	// Resources that are encrypted besides Secrets, as `resource` or `resource.group`, in plural and lower case.
	// Wildcards are not allowed.
	// +optional
	// +listType=atomic
	Resources []string `json:"resources,omitempty"`
	// How data is encrypted.
	// +optional
	Provider EncryptionProvider `json:"provider,omitempty"`
}

// EncryptionProvider says how data is encrypted.
type EncryptionProvider struct {
	// `aescbc`, `aesgcm` (needs automatic rotation of the key) or `secretbox`. Default: `aescbc`.
	// +optional
	Type *EncryptionProviderType `json:"type,omitempty"`
}

// EncryptionProviderType is a way of encrypting data.
//
// No enum: upstream names an unknown value only where it is first set (see the rules of package schemas).
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
	// ConfigMap, in the same namespace, whose key `config.yaml` holds the AuthenticationConfiguration.
	ConfigMapName string `json:"configMapName"`
}

// StructuredAuthorization holds settings of structured authorization.
type StructuredAuthorization struct {
	// ConfigMap, in the same namespace, whose key `config.yaml` holds the AuthorizationConfiguration.
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
