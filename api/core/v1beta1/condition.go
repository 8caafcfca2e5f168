// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ConditionType names one aspect of an object's state, for example `APIServerAvailable`.
type ConditionType string

// ConditionStatus is the outcome of the check behind a condition.
//
// The set is open: producers outside Pergola may add values.
type ConditionStatus string

const (
	// ConditionTrue means the check passed.
	ConditionTrue ConditionStatus = "True"
	// ConditionFalse means the check has failed for longer than the threshold of its type.
	ConditionFalse ConditionStatus = "False"
	// ConditionUnknown means the check could not be made.
	ConditionUnknown ConditionStatus = "Unknown"
	// ConditionProgressing means the check has not failed for longer than the threshold of its type
	// yet.
	ConditionProgressing ConditionStatus = "Progressing"
)

// Condition is the last verdict on one aspect of an object's state.
type Condition struct {
	// Name of the condition; unique within the list.
	Type ConditionType `json:"type"`
	// Outcome of the check: `True`, `False`, `Unknown`, or `Progressing` while a failure is younger
	// than its threshold.
	Status ConditionStatus `json:"status"`
	// Time at which the status last changed. Thresholds count from here.
	LastTransitionTime metav1.Time `json:"lastTransitionTime"`
	// Time at which status, reason, message or codes last changed.
	LastUpdateTime metav1.Time `json:"lastUpdateTime"`
	// Machine-readable cause of the last change, in CamelCase.
	Reason string `json:"reason"`
	// Explanation of the last change for people.
	Message string `json:"message"`
	// Classes of the errors behind a failed check, as far as its message reveals them.
	// +optional
	// +listType=atomic
	Codes []ErrorCode `json:"codes,omitempty"`
}
