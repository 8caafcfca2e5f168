// SPDX-License-Identifier: Apache-2.0

package landscape

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/schemas"
)

// TestNotPossibleErrorNamesObstacles checks that the error names all obstacles.
func TestNotPossibleErrorNamesObstacles(t *testing.T) {
	for name, c := range map[string]struct {
		err  OperationNotPossibleError
		want string
	}{
		"a rule that names the operation": {
			OperationNotPossibleError{Object: "Garden local", Operation: "rotate-ca-complete", Obstacles: []schemas.Obstacle{{Text: "rotate-ca-complete: status.credentials.rotation.certificateAuthorities.phase must be Prepared first, but no rotation has started"}}},
			`Garden local: rotate-ca-complete cannot be requested: rotate-ca-complete: status.credentials.rotation.certificateAuthorities.phase must be Prepared first, but no rotation has started`,
		},
		"a rule that says the same": {
			OperationNotPossibleError{Object: "Shoot a/b", Operation: "rotate-ca-start", Obstacles: []schemas.Obstacle{{Text: `"rotate-ca-start" is not possible while the cluster is hibernated or wakes up`}}},
			`Shoot a/b: rotate-ca-start cannot be requested: "rotate-ca-start" is not possible while the cluster is hibernated or wakes up`,
		},
		"several": {
			OperationNotPossibleError{Object: "Shoot a/b", Operation: "rotate-ca-start", Obstacles: []schemas.Obstacle{{Text: `"rotate-ca-start" is not possible while the cluster is hibernated or wakes up`}, {Text: `"rotate-ca-start" is not possible before the Shoot was created or restored successfully`}, {Text: "it is being deleted"}}},
			`Shoot a/b: rotate-ca-start cannot be requested: "rotate-ca-start" is not possible while the cluster is hibernated or wakes up; "rotate-ca-start" is not possible before the Shoot was created or restored successfully; it is being deleted`,
		},
		"another operation": {
			OperationNotPossibleError{Object: "Garden local", Operation: "rotate-ca-start", Obstacles: []schemas.Obstacle{{Text: "rotate-serviceaccount-key-start: the Garden is being deleted"}}},
			"Garden local: rotate-ca-start cannot be requested: rotate-serviceaccount-key-start: the Garden is being deleted",
		},
	} {
		t.Run(name, func(t *testing.T) { assert.EqualError(t, &c.err, c.want) })
	}
}

// TestOutcomeOfARotation checks that the outcome names the next step of a rotation.
func TestOutcomeOfARotation(t *testing.T) {
	live := &unstructured.Unstructured{}
	require.NoError(t, json.Unmarshal([]byte(`{"apiVersion": "operator.gardener.cloud/v1alpha1", "kind": "Garden", "metadata": {"name": "local"}, "status": {
		"lastOperation": {"type": "Reconcile", "state": "Succeeded", "progress": 100, "description": "done.", "lastUpdateTime": "2026-01-01T12:00:05Z"},
		"credentials": {"rotation": {"certificateAuthorities": {"phase": "Prepared"}}}}}`), live))
	text, ended, err := operationOutcome(live, noon)
	require.NoError(t, err)
	assert.True(t, ended)
	assert.Equal(t, "Reconcile Succeeded (100%): done; rotation of certificateAuthorities: Prepared; when all clients have switched, request rotate-ca-complete", text)
	text, ended, err = operationOutcome(live, noon.Add(time.Minute))
	require.NoError(t, err)
	assert.False(t, ended, "it has ended before")
	assert.Equal(t, "it has started", text)
}

// TestImplementedOperations checks the table of docs/reference/operations.md.
func TestImplementedOperations(t *testing.T) {
	for _, done := range []string{
		"Garden reconcile", "Garden rotate-ca-start", "Seed reconcile", "Seed renew-kubeconfig", "Seed renew-garden-access-secrets", "Seed renew-workload-identity-tokens",
		"Shoot reconcile", "Shoot retry", "Gardenlet force-redeploy",
	} {
		kind, operation, _ := strings.Cut(done, " ")
		assert.True(t, isImplemented(kind, operation), done)
	}
	for _, not := range []string{
		"Garden confirm-deletion", "Seed retry", "Seed confirm-deletion", "Shoot rotate-ca-start", "Shoot maintain", "ManagedSeed reconcile", "ManagedSeed renew-kubeconfig", "Gardenlet reconcile",
		"Gardenlet renew-kubeconfig", "Project confirm-deletion",
	} {
		kind, operation, _ := strings.Cut(not, " ")
		assert.False(t, isImplemented(kind, operation), not)
	}
	assert.True(t, isAnnotationOnly("Seed", "renew-kubeconfig"))
	assert.False(t, isAnnotationOnly("Seed", "reconcile"), "it has a lastOperation")
}

// TestSuspendedLandscapeRunsNoOperation checks that an operator ignores a Garden whose Landscape
// is suspended.
func TestSuspendedLandscapeRunsNoOperation(t *testing.T) {
	by := &ObjectStatus{Namespace: "garden", Name: "local"}
	a := handlerCheck{operation: "reconcile", runtimeFlags: "--context r", readObject: func(context.Context, time.Time) (*ObjectStatus, error) { return by, nil }}
	garden, gardenlet := operationTarget("Garden", "", "local"), operationTarget("Gardenlet", "garden", "local")
	require.NoError(t, a.checkOperator(t.Context(), garden, "to withdraw it: x", time.Now(), true))
	require.EqualError(t, a.checkOperator(t.Context(), garden, "to withdraw it: x", time.Now(), false),
		"reconcile on Garden local was requested, but cannot start: no operator runs. The request stays, and starts when one runs, or with pergola apply; to withdraw it: x")
	require.EqualError(t, a.checkOperator(t.Context(), gardenlet, "to withdraw it: x", time.Now(), false),
		"reconcile on Gardenlet garden/local was requested, but cannot start: no operator runs. The request stays, and starts when one runs; to withdraw it: x")
	by.Suspension = &landscapev1alpha1.Suspension{By: "alice", Reason: "the network"}
	require.EqualError(t, a.checkOperator(t.Context(), garden, "to withdraw it: x", time.Now(), true),
		"reconcile on Garden local was requested, but cannot start: Landscape garden/local is suspended by alice until pergola resume: the network. "+
			"The request stays, and starts after that (pergola resume garden/local --context r); to withdraw it: x")
	require.NoError(t, a.checkOperator(t.Context(), gardenlet, "to withdraw it: x", time.Now(), true), "it is no part of a Landscape")
	by = nil
	require.NoError(t, a.checkOperator(t.Context(), garden, "to withdraw it: x", time.Now(), true), "no Landscape is known")
}
