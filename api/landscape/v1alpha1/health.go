// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Health configures how the care of Gardens, Seeds and Shoots and their ManagedResources judge
// objects.
type Health struct {
	// Rules for kinds, which take precedence over the built-in ones. At most 256, and at most one
	// per kind.
	// +optional
	// +listType=map
	// +listMapKey=apiGroup
	// +listMapKey=kind
	Rules []HealthRule `json:"rules,omitempty"`
	// Check for kinds that neither a rule nor Gardener knows. `Status` checks conditions and
	// observed generation, as kstatus does. `Existence` only checks that the object exists, as
	// upstream does. Default: `Status`.
	// +optional
	// +kubebuilder:default=Status
	OtherKinds OtherKindsCheck `json:"otherKinds,omitempty"`
}

// HealthRule defines how objects of a kind are judged, by CEL expressions over the object, which is
// `self`. If an expression reads a field that the object lacks, the object is not healthy yet. At
// least one of `healthy` and `progressing` is set; the built-in rule of the kind replaces the unset
// one.
type HealthRule struct {
	// API group of the kind, without a version: a rule applies to all versions. Default: the core
	// group.
	// +optional
	// +kubebuilder:default=""
	APIGroup string `json:"apiGroup"`
	// Kind of the objects, for example `Deployment`. Secrets cannot be judged by a rule.
	Kind string `json:"kind"`
	// Expression that is true for a healthy object, for example `self.status.phase == "Running"`.
	// At most 4096 bytes.
	// +optional
	Healthy string `json:"healthy,omitempty"`
	// Expression that is true while a rollout of the object is in progress. At most 4096 bytes.
	// +optional
	Progressing string `json:"progressing,omitempty"`
	// Expression for the message about an object that is unhealthy or progressing, for example
	// `"phase is " + self.status.phase`. At most 4096 bytes. Unset: a sentence that names the kind.
	// +optional
	Message string `json:"message,omitempty"`
}

// OtherKindsCheck is the check for kinds without a rule.
// +kubebuilder:validation:Enum=Status;Existence
type OtherKindsCheck string

const (
	// OtherKindsCheckStatus checks conditions and observed generation, as kstatus does.
	OtherKindsCheckStatus OtherKindsCheck = "Status"
	// OtherKindsCheckExistence only checks that the object exists.
	OtherKindsCheckExistence OtherKindsCheck = "Existence"
)
