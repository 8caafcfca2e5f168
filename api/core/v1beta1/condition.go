package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ConditionType names one aspect of an object's state, for example `APIServerAvailable`.
type ConditionType string

// ConditionStatus is the outcome of the check behind a condition.
//
// The API knows no closed set: producers outside Pergola may add to it.
type ConditionStatus string

const (
	// ConditionTrue means the check passed.
	ConditionTrue ConditionStatus = "True"
	// ConditionFalse means the check failed, and did so for longer than the threshold of its type.
	ConditionFalse ConditionStatus = "False"
	// ConditionUnknown means the check could not be made.
	ConditionUnknown ConditionStatus = "Unknown"
	// ConditionProgressing means the check fails, but not yet for longer than the threshold of its type.
	ConditionProgressing ConditionStatus = "Progressing"
)

// Condition is the last verdict on one aspect of an object's state.
type Condition struct {
	// Name of the condition; unique within the list.
	Type ConditionType `json:"type"`
	// Verdict: `True`, `False`, `Unknown`, or `Progressing` while a failure is younger than its threshold.
	Status ConditionStatus `json:"status"`
	// Time at which the status last changed from one value to another. Thresholds count from here.
	LastTransitionTime metav1.Time `json:"lastTransitionTime"`
	// Time at which status, reason, message or codes last changed.
	LastUpdateTime metav1.Time `json:"lastUpdateTime"`
	// Machine-readable cause of the last change, in CamelCase.
	Reason string `json:"reason"`
	// Explanation of the last change for a person.
	Message string `json:"message"`
	// Classes of the errors behind a failed check, so far as they could be told from its message.
	// +optional
	// +listType=atomic
	Codes []ErrorCode `json:"codes,omitempty"`
}
