package v1alpha1

// Health says how objects are judged, by the care of Gardens, Seeds and Shoots and by the ManagedResources that they deploy.
type Health struct {
	// Rules for kinds, which go before the built-in ones. A kind has one rule at most; there are 256 at most.
	// +optional
	// +listType=map
	// +listMapKey=apiGroup
	// +listMapKey=kind
	Rules []HealthRule `json:"rules,omitempty"`
	// What is looked at in kinds that neither a rule nor Gardener knows: `Status` judges them in the terms of kstatus (conditions,
	// observed generation), `Existence` is content when they exist, as upstream is. Default: `Status`.
	// +optional
	// +kubebuilder:default=Status
	OtherKinds OtherKinds `json:"otherKinds,omitempty"`
}

// HealthRule says how the objects of a kind are judged: by CEL expressions over the object, which is `self`. A field that an
// expression reads and the object lacks means that the object is not healthy but on its way. At least one of `healthy` and
// `progressing` is set; what is not set is left to the built-in rule of the kind.
type HealthRule struct {
	// API group of the kind, without a version: a rule is for all of them. Default: the core group.
	// +optional
	// +kubebuilder:default=""
	APIGroup string `json:"apiGroup"`
	// Kind of the objects, for example `Deployment`. Secrets cannot be judged by a rule.
	Kind string `json:"kind"`
	// Expression that is true for a healthy object, for example `self.status.phase == "Running"`. 4096 bytes at most.
	// +optional
	Healthy string `json:"healthy,omitempty"`
	// Expression that is true while a roll-out of the object is under way. 4096 bytes at most.
	// +optional
	Progressing string `json:"progressing,omitempty"`
	// Expression that yields the text to show for an object that is not healthy, or is progressing, for example
	// `"phase is " + self.status.phase`. 4096 bytes at most. Unset: a sentence that names the kind.
	// +optional
	Message string `json:"message,omitempty"`
}

// OtherKinds says what is looked at in kinds without a rule.
// +kubebuilder:validation:Enum=Status;Existence
type OtherKinds string

const (
	// OtherKindsStatus judges them in the terms of kstatus.
	OtherKindsStatus OtherKinds = "Status"
	// OtherKindsExistence is content when they exist.
	OtherKindsExistence OtherKinds = "Existence"
)
