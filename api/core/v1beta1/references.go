// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// NamedResourceReference names an object that provider configurations refer to. The object is in
// the namespace of the project; for a Seed or Garden, in namespace `garden`.
type NamedResourceReference struct {
	// Name used in provider configurations; unique within the list.
	Name string `json:"name"`
	// Object that the name refers to. Only namespaced kinds; the namespace is the owner's.
	ResourceRef autoscalingv1.CrossVersionObjectReference `json:"resourceRef"`
}

// Extension enables or configures one extension of kind `Extension`.
type Extension struct {
	// Type as registered by the extension, for example `shoot-dns-service`.
	Type string `json:"type"`
	// Configuration in the extension's own API. Passed on unchanged.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	ProviderConfig *runtime.RawExtension `json:"providerConfig,omitempty"`
	// True disables an extension that is enabled for all objects of this kind.
	// +optional
	Disabled *bool `json:"disabled,omitempty"`
}

// AccessRestriction is a named access restriction, for example `eu-access-only`.
type AccessRestriction struct {
	// Name of the restriction, as offered by the region in the CloudProfile.
	Name string `json:"name"`
}

// AccessRestrictionWithOptions is an access restriction with settings.
type AccessRestrictionWithOptions struct {
	AccessRestriction `json:",inline"`
	// Settings of the restriction. Their meaning depends on the component that enforces it.
	// +optional
	Options map[string]string `json:"options,omitempty"`
}

// IPFamily is a version of the Internet Protocol.
// +kubebuilder:validation:Enum=IPv4;IPv6
type IPFamily string

const (
	// IPFamilyIPv4 is IPv4.
	IPFamilyIPv4 IPFamily = "IPv4"
	// IPFamilyIPv6 is IPv6.
	IPFamilyIPv6 IPFamily = "IPv6"
)

// IsIPv4SingleStack reports whether the list names IPv4 only; an empty list counts as IPv4.
func IsIPv4SingleStack(families []IPFamily) bool {
	return len(families) == 0 || (len(families) == 1 && families[0] == IPFamilyIPv4)
}

// IsIPv6SingleStack reports whether the list names IPv6 only.
func IsIPv6SingleStack(families []IPFamily) bool {
	return len(families) == 1 && families[0] == IPFamilyIPv6
}

// IsDualStack reports whether the list names both families.
func IsDualStack(families []IPFamily) bool {
	return len(families) == 2
}
