// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
)

// Condition types of a ManagedSeed.
const (
	// ManagedSeedShootReconciled reports whether the Shoot is ready to become a Seed.
	ManagedSeedShootReconciled gardencorev1beta1.ConditionType = "ShootReconciled"
	// SeedRegistered reports whether the gardenlet registered the Seed.
	SeedRegistered gardencorev1beta1.ConditionType = "SeedRegistered"
)

// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Namespaced,path=managedseeds,singular=managedseed,shortName=ms,categories=gardener
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.conditions[?(@.type=="SeedRegistered")].status`,description="Whether the Seed is registered."
// +kubebuilder:printcolumn:name="Shoot",type=string,JSONPath=`.spec.shoot.name`,description="Shoot that is the Seed."
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`,description="Time since creation."

// ManagedSeed turns a Shoot into a Seed with the name of the ManagedSeed. It lives in namespace
// `garden`.
type ManagedSeed struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// Desired state of the ManagedSeed.
	// +optional
	// +kubebuilder:validation:XValidation:rule="has(self.shoot) == has(oldSelf.shoot) && (!has(self.shoot) || self.shoot.name == oldSelf.shoot.name)",message="shoot is immutable",fieldPath=".shoot"
	Spec ManagedSeedSpec `json:"spec,omitempty"`
	// Observed state of the ManagedSeed.
	// +optional
	Status ManagedSeedStatus `json:"status,omitempty"`
}

// +kubebuilder:object:root=true

// ManagedSeedList is a list of ManagedSeeds.
type ManagedSeedList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// Items of the list.
	Items []ManagedSeed `json:"items"`
}

// ManagedSeedSpec is the desired state of a ManagedSeed.
type ManagedSeedSpec struct {
	// Shoot that becomes a Seed. Immutable. Required, except in the template of a ManagedSeedSet,
	// where it is not allowed.
	// +optional
	Shoot *Shoot `json:"shoot,omitempty"`
	// Gardenlet for the Shoot.
	Gardenlet GardenletConfig `json:"gardenlet"`
}

// Shoot refers to a Shoot of the same namespace.
type Shoot struct {
	// Name of the Shoot.
	Name string `json:"name"`
}

// GardenletConfig is the gardenlet of a ManagedSeed.
type GardenletConfig struct {
	// Deployment of the gardenlet.
	// +optional
	Deployment *GardenletDeployment `json:"deployment,omitempty"`
	// Configuration of the gardenlet: GardenletConfiguration of
	// gardenlet.config.gardener.cloud/v1alpha1, without the name of the Seed.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	Config runtime.RawExtension `json:"config,omitempty"`
	// Way to get first access to the garden: `ServiceAccount`, `BootstrapToken`, or `None` if the
	// configuration has a kubeconfig. Immutable. Default: `BootstrapToken`.
	// +optional
	Bootstrap *Bootstrap `json:"bootstrap,omitempty"`
	// Whether configuration and deployment are based on those of the parent gardenlet. Immutable.
	// Default: true.
	// +optional
	MergeWithParent *bool `json:"mergeWithParent,omitempty"`
}

// Bootstrap is a way for a gardenlet to get its first access to the garden.
// +kubebuilder:validation:Enum=ServiceAccount;BootstrapToken;None
type Bootstrap string

const (
	// BootstrapServiceAccount creates a temporary ServiceAccount.
	BootstrapServiceAccount Bootstrap = "ServiceAccount"
	// BootstrapToken creates a bootstrap token.
	BootstrapToken Bootstrap = "BootstrapToken"
	// BootstrapNone creates nothing: the configuration has a kubeconfig.
	BootstrapNone Bootstrap = "None"
)

// ManagedSeedStatus is the observed state of a ManagedSeed.
type ManagedSeedStatus struct {
	// Conditions of the ManagedSeed.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []gardencorev1beta1.Condition `json:"conditions,omitempty"`
	// Generation that was last reconciled.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
}
