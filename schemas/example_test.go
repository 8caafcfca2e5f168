// SPDX-License-Identifier: Apache-2.0

package schemas_test

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pergola-dev/pergola/schemas"
)

// ExampleValidate validates a Project with a misspelt field.
func ExampleValidate() {
	project := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "core.gardener.cloud/v1beta1", "kind": "Project",
		"metadata": map[string]any{"name": "team"},
		"spec":     map[string]any{"namspace": "garden-team"},
	}}
	violations, err := schemas.Validate(context.Background(), []schemas.Input{{Object: project}}, schemas.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, violation := range violations {
		fmt.Println(violation.Field, violation.Message)
	}
	// Output: spec.namspace the field "namspace" does not exist; did you mean "namespace"?
}
