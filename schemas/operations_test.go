// SPDX-License-Identifier: Apache-2.0

package schemas

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestPendingOperationMessage checks that the message names the object and the operation, and that
// the command withdraws it.
func TestPendingOperationMessage(t *testing.T) {
	for name, test := range map[string]struct{ kind, namespace, operation, object, command string }{
		"with a namespace": {"Shoot", "garden-local", "maintain", `"maintain" of Shoot garden-local/x`, "kubectl annotate shoot -n garden-local x gardener.cloud/operation-"},
		"without one":      {"Garden", "", "rotate-etcd-encryption-key-start", `"rotate-etcd-encryption-key-start" of Garden x`, "kubectl annotate garden x gardener.cloud/operation-"},
		"none":             {"Shoot", "garden-local", "", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			live := &unstructured.Unstructured{Object: map[string]any{}}
			live.SetKind(test.kind)
			live.SetNamespace(test.namespace)
			live.SetName("x")
			if test.operation == "" {
				assert.Empty(t, PendingOperationMessage(live))
				return
			}
			live.SetAnnotations(map[string]string{annotationOperation: test.operation})
			assert.Contains(t, PendingOperationMessage(live), test.object+" has not started yet")
			assert.Contains(t, WithdrawCommand(live), test.command)
		})
	}
}
