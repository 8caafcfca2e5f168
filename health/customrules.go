// SPDX-License-Identifier: Apache-2.0

package health

import "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

// ReasonHealthCheckError is the reason of a verdict whose check failed to run
// (pkg/apis/resources/v1alpha1: ConditionHealthCheckError).
const ReasonHealthCheckError = "HealthCheckError"

// Rules are custom rules per kind, which precede the built-in ones; package custom implements them.
type Rules interface {
	// Judge returns the ruling on an object, or false if its kind has no rule. It must be pure.
	Judge(obj *unstructured.Unstructured) (Ruling, bool)
}

// Ruling is the result of a custom rule.
type Ruling struct {
	// Healthy and Progressing are the answers; nil means the built-in rule of the kind decides.
	Healthy, Progressing *bool
	// IsUnreported means the object does not have a field yet that the rule reads. The object then
	// is not healthy but progressing.
	IsUnreported bool
	// Reason is the reason of a failure; empty means `<Kind>Unhealthy`. ReasonHealthCheckError
	// makes the status Unknown.
	Reason string
	// Message is the message for a person; empty means the built-in rule's message.
	Message string
}

// WithRules gives custom rules precedence over the built-in ones; nil changes nothing.
func WithRules(rules Rules) Option { return func(in *inputs) { in.rules = rules } }

// applyRuling replaces the answers of the built-in rule by those of a custom rule.
func (j *judgement) applyRuling(obj *unstructured.Unstructured, r Ruling) {
	r.Message = toSafeLine(r.Message)
	j.ground = BasisRule
	if r.Progressing != nil {
		j.progressing, j.progressMessage, j.isRolledOut = *r.Progressing, r.Message, false
		j.hasOwnStatus = true
	}
	if r.Healthy == nil {
		return
	}
	j.hasOwnStatus, j.isChecked, j.failure = true, true, nil
	if *r.Healthy {
		if r.Message != "" {
			j.progressMessage, j.isRolledOut = r.Message, false
		}
		return
	}
	message := r.Message
	if message == "" {
		message = "the health rule for " + obj.GetKind() + " says so"
	}
	j.failure = &Failure{Reason: r.Reason, Message: message, Waiting: r.IsUnreported || j.progressing}
}
