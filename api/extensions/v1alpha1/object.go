// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
)

// ExtensionClass is the kind of cluster that an extension object is for.
// +kubebuilder:validation:Enum=garden;seed;shoot
type ExtensionClass string

const (
	// ExtensionClassGarden marks objects that the operator creates for the Garden.
	ExtensionClassGarden ExtensionClass = "garden"
	// ExtensionClassSeed marks objects that a gardenlet creates for its Seed.
	ExtensionClassSeed ExtensionClass = "seed"
	// ExtensionClassShoot marks objects for a Shoot; it is the default.
	ExtensionClassShoot ExtensionClass = "shoot"
)

// DefaultSpec is the part of the spec that all extension kinds share.
type DefaultSpec struct {
	// Type that selects the extension for the object, as registered, for example `local`.
	// Immutable.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="type is immutable"
	Type string `json:"type"`
	// Kind of cluster that the object is for: `garden`, `seed` or `shoot`. Default: `shoot`.
	// +optional
	Class *ExtensionClass `json:"class,omitempty"`
	// Configuration in the extension's own API.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	ProviderConfig *runtime.RawExtension `json:"providerConfig,omitempty"`
}

// DefaultStatus is the part of the status that all extension kinds share.
type DefaultStatus struct {
	// Provider-specific status in the extension's own API. Set by the extension.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	ProviderStatus *runtime.RawExtension `json:"providerStatus,omitempty"`
	// Health reported by the extension. Copied to the owner's conditions.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []gardencorev1beta1.Condition `json:"conditions,omitempty"`
	// Failure of the last operation; unset after a success.
	// +optional
	LastError *gardencorev1beta1.LastError `json:"lastError,omitempty"`
	// Operation in progress, or the last one.
	// +optional
	LastOperation *gardencorev1beta1.LastOperation `json:"lastOperation,omitempty"`
	// Generation that the last operation reconciled.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Data that the extension needs when the control plane moves to another seed.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	State *runtime.RawExtension `json:"state,omitempty" pergola:"sensitive"`
	// Other objects that must move with this one.
	// +optional
	// +listType=map
	// +listMapKey=name
	Resources []gardencorev1beta1.NamedResourceReference `json:"resources,omitempty"`
}

// Object is the common interface of all kinds of this package except Cluster.
// +kubebuilder:object:generate=false
type Object interface {
	metav1.Object
	runtime.Object
	// GetDefaultSpec returns the shared part of the spec; writes to it change the object.
	GetDefaultSpec() *DefaultSpec
	// GetDefaultStatus returns the shared part of the status; writes to it change the object.
	GetDefaultStatus() *DefaultStatus
}
