package v1beta1

import (
	autoscalingv1 "k8s.io/api/autoscaling/v1"
)

// DNS is the domain of a cluster and the providers that serve it.
type DNS struct {
	// Domain of the cluster; its API server is reached at `api.<domain>`. Immutable. Default: a subdomain
	// `<shoot>.<project>` of a default domain of the landscape.
	// +optional
	Domain *string `json:"domain,omitempty"`
	// DNS providers. Only for domains that are not under a default domain; more than one is deprecated.
	// +optional
	// +listType=atomic
	Providers []DNSProvider `json:"providers,omitempty"`
}

// DNSProvider is a DNS service with credentials.
type DNSProvider struct {
	// Domains that the provider serves or not. Deprecated.
	// +optional
	Domains *DNSIncludeExclude `json:"domains,omitempty"`
	// Whether the provider serves the domain of the cluster. At most one. Deprecated: configure further providers at the
	// DNS extension.
	// +optional
	Primary *bool `json:"primary,omitempty"`
	// Name of a Secret with the credentials. Forbidden from Kubernetes 1.35 on. Deprecated: use `credentialsRef`.
	// +optional
	SecretName *string `json:"secretName,omitempty"`
	// Type of the provider, for example `aws-route53`; `unmanaged` for none.
	// +optional
	Type *string `json:"type,omitempty"`
	// Hosted zones that the provider serves or not. Deprecated.
	// +optional
	Zones *DNSIncludeExclude `json:"zones,omitempty"`
	// Secret or WorkloadIdentity, in the project's namespace, with the credentials. Unset for the primary provider: the
	// credentials of the infrastructure.
	// +optional
	CredentialsRef *autoscalingv1.CrossVersionObjectReference `json:"credentialsRef,omitempty"`
}

// DNSUnmanaged is the type of a DNS provider that stands for no DNS records at all.
const DNSUnmanaged = "unmanaged"

// DNSIncludeExclude says what belongs to a provider and what does not.
type DNSIncludeExclude struct {
	// What belongs to it.
	// +optional
	// +listType=atomic
	Include []string `json:"include,omitempty"`
	// What does not.
	// +optional
	// +listType=atomic
	Exclude []string `json:"exclude,omitempty"`
}
