// SPDX-License-Identifier: Apache-2.0

package schemas

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pergola-dev/pergola/schemas/structure"
)

// incompleteVariants returns copies of a value, each with one part missing or empty.
func incompleteVariants(value any) []any {
	var all []any
	switch v := value.(type) {
	case map[string]any:
		for name, child := range v {
			without := shallowCopy(v)
			delete(without, name)
			all = append(all, without)
			for _, variant := range incompleteVariants(child) {
				with := shallowCopy(v)
				with[name] = variant
				all = append(all, with)
			}
		}
		all = append(all, map[string]any{})
	case []any:
		for i, child := range v {
			for _, variant := range incompleteVariants(child) {
				with := slices.Clone(v)
				with[i] = variant
				all = append(all, with)
			}
		}
		all = append(all, []any{})
	case string:
		all = append(all, "")
	}
	return all
}

func shallowCopy(object map[string]any) map[string]any {
	result := make(map[string]any, len(object))
	for name, value := range object {
		result[name] = value
	}
	return result
}

// TestRulesCanBeEvaluated checks that every rule evaluates with any part of an object missing or
// empty, before or after a change. A rule that does not makes validation as a whole fail.
func TestRulesCanBeEvaluated(t *testing.T) {
	around := &LandscapeObjects{Objects: []*unstructured.Unstructured{validObject(t, "CloudProfile"), validObject(t, "Garden"), validObject(t, "Project"), validObject(t, "Seed")}}
	for gvk := range kindsWithSchema(t) {
		name := structure.RulesName(gvk)
		if name == "Namespace" || name == "extensions.Cluster" || name == "ControllerDeployment" && gvk.Version == "v1beta1" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			whole := validObject(t, name)
			var inputs []Input
			for _, variant := range incompleteVariants(whole.Object) {
				object := &unstructured.Unstructured{Object: variant.(map[string]any)}
				object.SetGroupVersionKind(gvk)
				inputs = append(inputs, Input{Object: object}, Input{Object: object, Old: whole}, Input{Object: whole, Old: object})
			}
			found, err := Validate(t.Context(), inputs, Options{Landscape: around})
			require.NoError(t, err)
			for _, v := range found {
				assert.NotContains(t, v.Message, ruleFailureMessage, v.Rule)
			}
		})
	}
}
