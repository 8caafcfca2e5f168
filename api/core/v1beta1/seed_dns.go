// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
)

// SeedDNS configures DNS for a Seed and its Shoots.
type SeedDNS struct {
	// Provider of the ingress domain of the Seed. Required together with `ingress`.
	// +optional
	Provider *SeedDNSProvider `json:"provider,omitempty"`
	// Domain of records that only Gardener uses, such as the internal address of each Shoot's API
	// server. Required. Immutable while Shoots use the Seed.
	// +optional
	Internal *SeedDNSProviderConfig `json:"internal,omitempty"`
	// Domains whose subdomains Shoots of the Seed get. The first matching one is used. Cannot be
	// emptied.
	// +optional
	// +listType=atomic
	Defaults []SeedDNSProviderConfig `json:"defaults,omitempty"`
}

// SeedDNSProvider is a DNS service with credentials.
type SeedDNSProvider struct {
	// Type of the provider, for example `aws-route53`.
	Type string `json:"type"`
	// Secret or WorkloadIdentity with the credentials. Required.
	// +optional
	CredentialsRef *corev1.ObjectReference `json:"credentialsRef,omitempty"`
}

// SeedDNSProviderConfig is a domain with the DNS service that serves it.
type SeedDNSProviderConfig struct {
	// Type of the provider, for example `aws-route53`.
	Type string `json:"type"`
	// Domain.
	Domain string `json:"domain"`
	// Hosted zone of the domain. Unset: the extension finds it.
	// +optional
	Zone *string `json:"zone,omitempty"`
	// Secret or WorkloadIdentity with the credentials.
	CredentialsRef corev1.ObjectReference `json:"credentialsRef"`
}
