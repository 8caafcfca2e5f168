// SPDX-License-Identifier: Apache-2.0

package health_test

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pergola-dev/pergola/health"
)

// ExampleCheck judges a Deployment whose controller has not seen the last change.
func ExampleCheck() {
	deployment := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment",
		"metadata": map[string]any{"namespace": "garden", "name": "gardener-dashboard", "generation": int64(2)},
		"status":   map[string]any{"observedGeneration": int64(1)},
	}}
	verdict := health.Check(deployment)
	fmt.Println(verdict.Healthy, verdict.Status, verdict.Message)
	// Output: false InProgress observed generation outdated (1/2)
}
