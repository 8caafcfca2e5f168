// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	autoscalingv1 "k8s.io/api/autoscaling/v1"
)

// DNS holds the domain of a cluster and the providers that serve it.
type DNS struct {
	// Domain of the cluster; its API server is at `api.<domain>`. Immutable. Default: a subdomain
	// `<shoot>.<project>` of a default domain of the landscape.
	// +optional
	Domain *string `json:"domain,omitempty"`
	// DNS providers. Only for domains outside of the default domains; more than one is deprecated.
	// +optional
	// +listType=atomic
	Providers []DNSProvider `json:"providers,omitempty"`
}

// DNSProvider is a DNS service with credentials.
type DNSProvider struct {
	// Domains that the provider includes or excludes. Deprecated.
	// +optional
	Domains *DNSIncludeExclude `json:"domains,omitempty"`
	// Whether the provider serves the domain of the cluster. At most one. Deprecated: configure
	// additional providers at the DNS extension.
	// +optional
	Primary *bool `json:"primary,omitempty"`
	// Name of a Secret with the credentials. Forbidden from Kubernetes 1.35 on. Deprecated: use
	// `credentialsRef`.
	// +optional
	SecretName *string `json:"secretName,omitempty"`
	// Type of the provider, for example `aws-route53`; `unmanaged` for no provider.
	// +optional
	Type *string `json:"type,omitempty"`
	// Hosted zones that the provider includes or excludes. Deprecated.
	// +optional
	Zones *DNSIncludeExclude `json:"zones,omitempty"`
	// Secret or WorkloadIdentity, in the project's namespace, with the credentials. Unset for the
	// primary provider: the credentials of the infrastructure.
	// +optional
	CredentialsRef *autoscalingv1.CrossVersionObjectReference `json:"credentialsRef,omitempty"`
}

// DNSUnmanaged is the provider type of Shoots without DNS records.
const DNSUnmanaged = "unmanaged"

// DNSIncludeExclude lists included and excluded items.
type DNSIncludeExclude struct {
	// Included items.
	// +optional
	// +listType=atomic
	Include []string `json:"include,omitempty"`
	// Excluded items.
	// +optional
	// +listType=atomic
	Exclude []string `json:"exclude,omitempty"`
}
