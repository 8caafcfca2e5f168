package health

import "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

// ReasonHealthCheckError is the reason of a verdict whose check could not be made
// (pkg/apis/resources/v1alpha1: ConditionHealthCheckError).
const ReasonHealthCheckError = "HealthCheckError"

// Rules are rules per kind from outside, which go before the built-in ones; package custom has an
// implementation.
type Rules interface {
	// Judge gives the ruling on an object, false if there is no rule for its kind. It must be pure.
	Judge(obj *unstructured.Unstructured) (Ruling, bool)
}

// Ruling is the outcome of a rule from outside.
type Ruling struct {
	// Healthy and Progressing are the answers; nil leaves the question to the built-in rule of the
	// kind.
	Healthy, Progressing *bool
	// Unreported means that an answer is not to be had yet: the object lacks a field that the rule
	// reads. The object then is not healthy but on its way.
	Unreported bool
	// Reason of a failure; empty means `<Kind>Unhealthy`. ReasonHealthCheckError makes the status
	// Unknown.
	Reason string
	// Message for a person; empty leaves it to the built-in rule.
	Message string
}

// WithRules has the rules asked before the built-in ones; nil changes nothing.
func WithRules(rules Rules) Option { return func(in *inputs) { in.rules = rules } }

// overrule puts the answers of a rule from outside in the place of the built-in ones.
func (j *judgement) overrule(obj *unstructured.Unstructured, r Ruling) {
	r.Message = presentable(r.Message)
	j.ground = GroundRule
	if r.Progressing != nil {
		j.progressing, j.progress, j.rolledOut = *r.Progressing, r.Message, false
		j.own = true
	}
	if r.Healthy == nil {
		return
	}
	j.own, j.judged, j.failure = true, true, nil
	if *r.Healthy {
		if r.Message != "" {
			j.progress, j.rolledOut = r.Message, false
		}
		return
	}
	message := r.Message
	if message == "" {
		message = "the rule of health for " + obj.GetKind() + " says so"
	}
	j.failure = &Failure{Reason: r.Reason, Message: message, Waiting: r.Unreported || j.progressing}
}
