// SPDX-License-Identifier: Apache-2.0

package health

import (
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Reads are tolerant: a missing or mistyped field is the zero value, as in a decoded Go type.

func fieldAt(obj map[string]any, path ...string) any {
	var cur any = obj
	for _, p := range path {
		m, ok := cur.(map[string]any)
		if !ok {
			return nil
		}
		cur = m[p]
	}
	return cur
}

func intAt(obj map[string]any, path ...string) (int64, bool) {
	switch n := fieldAt(obj, path...).(type) {
	case int64:
		return n, true
	case int:
		return int64(n), true
	case int32:
		return int64(n), true
	case float64:
		return int64(n), true
	}
	return 0, false
}

func intOrZero(obj *unstructured.Unstructured, path ...string) int64 {
	n, _ := intAt(obj.Object, path...)
	return n
}

func intOrDefault(obj *unstructured.Unstructured, fallback int64, path ...string) int64 {
	if n, ok := intAt(obj.Object, path...); ok {
		return n
	}
	return fallback
}

func textAt(obj map[string]any, path ...string) string {
	s, _ := fieldAt(obj, path...).(string)
	return s
}

func stringAt(obj *unstructured.Unstructured, path ...string) string {
	return textAt(obj.Object, path...)
}

func boolAt(obj *unstructured.Unstructured, path ...string) bool {
	b, _ := fieldAt(obj.Object, path...).(bool)
	return b
}

func listAt(obj map[string]any, path ...string) []map[string]any {
	items, _ := fieldAt(obj, path...).([]any)
	out := make([]map[string]any, 0, len(items))
	for _, item := range items {
		if m, ok := item.(map[string]any); ok {
			out = append(out, m)
		}
	}
	return out
}

func textsAt(obj map[string]any, path ...string) []string {
	items, _ := fieldAt(obj, path...).([]any)
	var out []string
	for _, item := range items {
		if s, ok := item.(string); ok {
			out = append(out, s)
		}
	}
	return out
}

func timeAt(obj map[string]any, path ...string) time.Time {
	t, err := time.Parse(time.RFC3339, textAt(obj, path...))
	if err != nil {
		return time.Time{}
	}
	return t
}

// statusCondition is an entry of status.conditions, without kind-specific fields.
type statusCondition struct {
	kind, status, reason, message string
	observedGeneration            int64
	transition                    time.Time
	codes                         []string
}

func conditionsOf(obj *unstructured.Unstructured) []statusCondition {
	return conditionsAt(obj.Object, "status", "conditions")
}

func conditionsAt(obj map[string]any, path ...string) []statusCondition {
	items := listAt(obj, path...)
	out := make([]statusCondition, 0, len(items))
	for _, c := range items {
		out = append(out, readCondition(c))
	}
	return out
}

func readCondition(c map[string]any) statusCondition {
	generation, _ := intAt(c, "observedGeneration")
	return statusCondition{
		kind: textAt(c, "type"), status: textAt(c, "status"), reason: textAt(c, "reason"), message: textAt(c, "message"),
		observedGeneration: generation, transition: timeAt(c, "lastTransitionTime"), codes: textsAt(c, "codes"),
	}
}

func conditionOf(obj *unstructured.Unstructured, kind string) (statusCondition, bool) {
	for _, c := range conditionsOf(obj) {
		if c.kind == kind {
			return c, true
		}
	}
	return statusCondition{}, false
}

// checkConditionTrue fails unless the condition exists and is True.
func checkConditionTrue(obj *unstructured.Unstructured, kind string) *Failure {
	c, ok := conditionOf(obj, kind)
	if !ok {
		return waitf("condition %q is missing", kind)
	}
	return c.expect("True")
}

// checkOptionalCondition fails if the condition exists with another status.
func checkOptionalCondition(obj *unstructured.Unstructured, kind, status string) *Failure {
	if c, ok := conditionOf(obj, kind); ok {
		return c.expect(status)
	}
	return nil
}

func (c statusCondition) expect(status string) *Failure {
	if c.status == status {
		return nil
	}
	f := failf("condition %q has status %s, expected %s: %s", c.kind, c.status, status, c.cause())
	f.Waiting, f.Codes = c.status == "Unknown" || c.status == "Progressing", c.codes
	return f
}

func (c statusCondition) cause() string {
	switch {
	case c.reason != "" && c.message != "":
		return c.reason + ": " + c.message
	case c.reason+c.message == "":
		return "no reason given"
	default:
		return c.reason + c.message
	}
}

// checkGenerationObserved fails until the controller has observed the latest generation.
func checkGenerationObserved(obj *unstructured.Unstructured) *Failure {
	if seen := intOrZero(obj, "status", "observedGeneration"); seen < generation(obj) {
		return waitf("observed generation outdated (%d/%d)", seen, generation(obj))
	}
	return nil
}

// firstFailure returns the first failure.
func firstFailure(checks ...*Failure) *Failure {
	for _, f := range checks {
		if f != nil {
			return f
		}
	}
	return nil
}

// generation returns metadata.generation; the accessor of the object reads only int64.
func generation(obj *unstructured.Unstructured) int64 {
	return intOrZero(obj, "metadata", "generation")
}
