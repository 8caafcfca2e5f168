// SPDX-License-Identifier: Apache-2.0

package custom

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	celconfig "k8s.io/apiserver/pkg/apis/cel"

	"github.com/pergola-dev/pergola/health"
	"github.com/pergola-dev/pergola/internal/suggest"
)

// costLimit bounds one evaluation in CEL cost units: a fifth of the API server's limit per call, a
// few hundredths of a second. Iterating over ten thousand items is well within it.
const costLimit = celconfig.PerCallLimit / 5

var _ health.Rules = (*RuleSet)(nil)

// Judge applies the rule of the object's kind, or returns false if there is none. If a field is
// missing, the object is not healthy but progressing. If a rule fails otherwise (wrong types, too
// expensive), the verdict is a HealthCheckError; it neither panics nor returns an error.
func (s *RuleSet) Judge(obj *unstructured.Unstructured) (health.Ruling, bool) {
	if s == nil || obj == nil {
		return health.Ruling{}, false
	}
	rule, ok := s.rules[obj.GroupVersionKind().GroupKind()]
	if !ok {
		return health.Ruling{}, false
	}
	input := map[string]any{objectVariable: withoutNulls(obj.Object)}
	out := health.Ruling{}
	for _, question := range []struct {
		name    string
		program cel.Program
		answer  **bool
		// unreported is the answer while the object does not have the field.
		unreported bool
	}{
		{"healthy", rule.healthy, &out.Healthy, false},
		{"progressing", rule.progressing, &out.Progressing, true},
	} {
		if question.program == nil {
			continue
		}
		answer, err := evaluate[bool](question.program, input)
		var missing *missingError
		switch {
		case errors.As(err, &missing):
			answer, out.IsUnreported, out.Message = question.unreported, true, missing.Error()+similarFieldHint(missing.field, obj.Object)
		case err != nil:
			return failedRuling(obj, question.name, err), true
		}
		*question.answer = &answer
	}
	if out.IsUnreported {
		progressing := true
		out.Progressing = &progressing
		return out, true
	}
	if rule.message != nil && !isHealthy(out) {
		// A failing message does not suppress the verdict.
		var err error
		if out.Message, err = evaluate[string](rule.message, input); err != nil {
			out.Message = fmt.Sprintf("the health rule for %s says so, but its message cannot be evaluated: %v", obj.GetKind(), err)
		}
	}
	return out, true
}

// isHealthy reports whether the object needs no message.
func isHealthy(r health.Ruling) bool {
	return r.Healthy != nil && *r.Healthy && (r.Progressing == nil || !*r.Progressing)
}

func failedRuling(obj *unstructured.Unstructured, expression string, err error) health.Ruling {
	no := false
	return health.Ruling{
		Healthy: &no, Reason: health.ReasonHealthCheckError,
		Message: fmt.Sprintf("the health rule for %s cannot be evaluated: %s: %v", obj.GetKind(), expression, err),
	}
}

// missingError is a field or an item that the expression reads and the object does not have.
type missingError struct{ field string }

func (e *missingError) Error() string {
	if e.field == "" {
		return "a value that the landscape's rule reads is not reported yet"
	}
	return fmt.Sprintf("field %q is not reported yet", e.field)
}

// similarFieldHint returns a hint if the object has a field with a nearly equal name, because the
// rule most likely misspells it.
func similarFieldHint(field string, obj map[string]any) string {
	field = field[strings.LastIndex(field, ".")+1:]
	var names []string
	collectNames(obj, &names)
	name := suggest.Closest(field, names)
	// A prefix makes a different word: unavailableReplicas is not availableReplicas.
	if name == "" || name == field || max(len(name), len(field))-min(len(name), len(field)) > 1 {
		return ""
	}
	return fmt.Sprintf("; the object has %q", name)
}

// maxNames bounds how many fields are compared with a missing one.
const maxNames = 1000

func collectNames(value any, names *[]string) {
	switch v := value.(type) {
	case map[string]any:
		for name, inner := range v {
			if len(*names) == maxNames {
				return
			}
			if name != "managedFields" && name != "annotations" && name != "labels" {
				*names = append(*names, name)
				collectNames(inner, names)
			}
		}
	case []any:
		for _, inner := range v {
			collectNames(inner, names)
		}
	}
}

// evaluate runs a program over the object.
func evaluate[T any](program cel.Program, input map[string]any) (result T, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("the evaluation panicked: %v", r)
		}
	}()
	value, _, err := program.Eval(input)
	if err != nil {
		return result, missingFieldError(err)
	}
	if types.IsUnknownOrError(value) {
		return result, fmt.Errorf("yields %v", value)
	}
	result, ok := value.Value().(T)
	if !ok {
		return result, fmt.Errorf("yields %s, expected %T", value.Type().TypeName(), result)
	}
	return result, nil
}

// missingPattern matches missing fields; the library distinguishes errors only by text.
var missingPattern = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(?:no such (?:key|attribute\(s\)): (.*)|index out of bounds|index '?\d+'? out of range)`)
})

func missingFieldError(err error) error {
	m := missingPattern().FindStringSubmatch(err.Error())
	if m == nil {
		return err
	}
	return &missingError{field: m[1]}
}

// withoutNulls returns the value without null fields, which count as missing. A value without nulls
// is returned unchanged.
func withoutNulls(value any) any {
	if !hasNull(value) {
		return value
	}
	switch v := value.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, item := range v {
			if item != nil {
				out[key] = withoutNulls(item)
			}
		}
		return out
	case []any:
		out := make([]any, 0, len(v))
		for _, item := range v {
			if item != nil {
				out = append(out, withoutNulls(item))
			}
		}
		return out
	}
	return value
}

func hasNull(value any) bool {
	switch v := value.(type) {
	case nil:
		return true
	case map[string]any:
		for _, item := range v {
			if hasNull(item) {
				return true
			}
		}
	case []any:
		for _, item := range v {
			if hasNull(item) {
				return true
			}
		}
	}
	return false
}
