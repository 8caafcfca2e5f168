// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,path=exposureclasses,singular=exposureclass,shortName=expclass;expcls,categories=gardener
// +kubebuilder:printcolumn:name="Handler",type=string,JSONPath=`.handler`,description="Handler in the configuration of gardenlets."
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`,description="Time since creation."

// ExposureClass is a way to expose the API servers of Shoots, for example to the internet or only
// internally.
type ExposureClass struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// Handler in the configuration of gardenlets that implements the class. Immutable.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="handler is immutable"
	Handler string `json:"handler"`
	// Seeds that can serve the class. Immutable.
	// +optional
	Scheduling *ExposureClassScheduling `json:"scheduling,omitempty"`
}

// +kubebuilder:object:root=true

// ExposureClassList is a list of ExposureClasses.
type ExposureClassList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// Items of the list.
	Items []ExposureClass `json:"items"`
}

// ExposureClassScheduling selects the Seeds that can serve an ExposureClass.
type ExposureClassScheduling struct {
	// Seeds that can serve the class; merged with the selector of the Shoot.
	// +optional
	SeedSelector *SeedSelector `json:"seedSelector,omitempty"`
	// Taints of Seeds that Shoots of the class tolerate; merged with the tolerations of the Shoot.
	// +optional
	// +listType=atomic
	Tolerations []Toleration `json:"tolerations,omitempty"`
}
