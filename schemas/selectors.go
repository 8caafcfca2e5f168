// SPDX-License-Identifier: Apache-2.0

package schemas

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/pergola-dev/pergola/internal/suggest"
)

// checkLabelSelector checks a label selector with the API server's own function. The structural
// check reports values of another form.
func (r *findingCollector) checkLabelSelector(value fieldValue) {
	fields, ok := value.value.(map[string]any)
	if !ok {
		return
	}
	var selector metav1.LabelSelector
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(fields, &selector); err != nil {
		return
	}
	r.addFieldErrors(metav1validation.ValidateLabelSelector(&selector, metav1validation.LabelSelectorValidationOptions{}, field.NewPath(value.path)))
}

// addFieldErrors adds the findings of a function of the API server.
func (r *findingCollector) addFieldErrors(errors field.ErrorList) {
	for _, err := range errors {
		words := err.Detail
		if text, ok := err.BadValue.(string); ok && text != "" {
			words = fmt.Sprintf("%q: %s", text, words)
		}
		r.add(fieldValue{path: err.Field}, ViolationType(strings.TrimPrefix(string(err.Type), "FieldValue")), "%s", words)
	}
}

// suggestionHint returns a hint at the word that was probably meant, or "".
func suggestionHint(word string, known []string) string {
	if suggestion := suggest.Closest(word, known); suggestion != "" {
		return fmt.Sprintf("; did you mean %q?", suggestion)
	}
	return ""
}
