// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// GardenerDashboardConfig holds settings of gardener-dashboard.
type GardenerDashboardConfig struct {
	// Whether users can log in with a token. If false, `oidcConfig` is required. Default: true.
	// +optional
	// +kubebuilder:default=true
	EnableTokenLogin *bool `json:"enableTokenLogin,omitempty"`
	// ConfigMap, in namespace `garden`, with settings of the user interface.
	// +optional
	FrontendConfigMapRef *corev1.LocalObjectReference `json:"frontendConfigMapRef,omitempty"`
	// ConfigMap, in namespace `garden`, with logos and icons.
	// +optional
	AssetsConfigMapRef *corev1.LocalObjectReference `json:"assetsConfigMapRef,omitempty"`
	// Settings of tickets on GitHub.
	// +optional
	GitHub *DashboardGitHub `json:"gitHub,omitempty"`
	// Log level: `trace`, `debug`, `info`, `warn` or `error`. Default: `info`.
	// +optional
	// +kubebuilder:default=info
	// +kubebuilder:validation:Enum=trace;debug;info;warn;error
	LogLevel *string `json:"logLevel,omitempty"`
	// Login by OpenID Connect. Requires structured authentication of kube-apiserver.
	// +optional
	OIDCConfig *DashboardOIDC `json:"oidcConfig,omitempty"`
	// Terminals in the browser. Unset: none.
	// +optional
	Terminal *DashboardTerminal `json:"terminal,omitempty"`
	// Ingress. Deprecated.
	// +optional
	Ingress *DashboardIngress `json:"ingress,omitempty"`
	// Domain of the dashboard. Default: `dashboard` and `gardener` below the domains of the Garden.
	// +optional
	Domain *DNSDomain `json:"domain,omitempty"`
	// Name of a Secret, in namespace `garden`, with the server certificate. Default: the Secret
	// with label `gardener.cloud/role=garden-cert`, otherwise a certificate signed by Gardener.
	// +optional
	TLSSecretName *string `json:"tlsSecretName,omitempty"`
	// Whether kubeconfigs from the dashboard contain the certificate authority of kube-apiserver's
	// SNI certificate. Requires `kubeAPIServer.sni`.
	// +optional
	PropagateCAFromSNI *bool `json:"propagateCAFromSNI,omitempty"`
}

// DashboardGitHub holds settings of tickets on GitHub.
type DashboardGitHub struct {
	// URL of GitHub's API. Default: `https://api.github.com`.
	// +optional
	// +kubebuilder:default="https://api.github.com"
	// +kubebuilder:validation:MinLength=1
	APIURL string `json:"apiURL,omitempty"`
	// Organisation that the repository belongs to.
	// +kubebuilder:validation:MinLength=1
	Organisation string `json:"organisation"`
	// Repository with the tickets.
	// +kubebuilder:validation:MinLength=1
	Repository string `json:"repository"`
	// Secret, in namespace `garden`, with the credentials.
	SecretRef corev1.LocalObjectReference `json:"secretRef"`
	// Interval at which tickets are fetched. Default: 15m if the Secret has no key `webhookSecret`.
	// +optional
	// +kubebuilder:validation:Format=duration
	PollInterval *metav1.Duration `json:"pollInterval,omitempty"`
}

// DashboardOIDC holds settings of login by OpenID Connect.
type DashboardOIDC struct {
	// Public client id. Required.
	// +optional
	ClientIDPublic *string `json:"clientIDPublic,omitempty"`
	// URL of the issuer, https. Required.
	// +optional
	IssuerURL *string `json:"issuerURL,omitempty"`
	// Maximum duration of a session. Default: 12h.
	// +optional
	// +kubebuilder:validation:Format=duration
	SessionLifetime *metav1.Duration `json:"sessionLifetime,omitempty"`
	// Scopes in addition to `openid` and `email`.
	// +optional
	// +listType=atomic
	AdditionalScopes []string `json:"additionalScopes,omitempty"`
	// Secret, in namespace `garden`, with client id and secret.
	SecretRef corev1.LocalObjectReference `json:"secretRef"`
	// Secret, in namespace `garden`, whose key `ca.crt` verifies the issuer.
	// +optional
	CertificateAuthoritySecretRef *corev1.LocalObjectReference `json:"certificateAuthoritySecretRef,omitempty"`
}

// DashboardTerminal holds settings of terminals in the browser.
type DashboardTerminal struct {
	// Container that terminals run.
	Container DashboardTerminalContainer `json:"container"`
	// Hosts that terminals may connect to, without scheme, possibly with a wildcard.
	// +optional
	// +listType=atomic
	AllowedHosts []string `json:"allowedHosts,omitempty"`
}

// DashboardTerminalContainer is the container that terminals run.
type DashboardTerminalContainer struct {
	// Image of the container.
	Image string `json:"image"`
	// Description of the container for users.
	// +optional
	Description *string `json:"description,omitempty"`
}

// DashboardIngress holds settings of the Ingress.
type DashboardIngress struct {
	// Whether the dashboard has an Ingress. Default: true.
	// +optional
	// +kubebuilder:default=true
	Enabled *bool `json:"enabled,omitempty"`
}
