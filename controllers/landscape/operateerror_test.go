package landscape

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// What is not possible is said once.
func TestNotPossible(t *testing.T) {
	for name, c := range map[string]struct {
		err  NotPossibleError
		want string
	}{
		"a rule that names the operation": {
			NotPossibleError{Object: "Garden local", Operation: "rotate-ca-complete", Reasons: []string{"rotate-ca-complete: status.credentials.rotation.certificateAuthorities.phase has to be Prepared before; none was started yet"}},
			`Garden local: rotate-ca-complete is not possible: status.credentials.rotation.certificateAuthorities.phase has to be Prepared before; none was started yet`,
		},
		"a rule that says the same": {
			NotPossibleError{Object: "Shoot a/b", Operation: "rotate-ca-start", Reasons: []string{`"rotate-ca-start" is not possible while the cluster is hibernated or wakes up`}},
			"Shoot a/b: rotate-ca-start is not possible while the cluster is hibernated or wakes up",
		},
		"several": {
			NotPossibleError{Object: "Shoot a/b", Operation: "rotate-ca-start", Reasons: []string{
				`"rotate-ca-start" is not possible while the cluster is hibernated or wakes up`, `"rotate-ca-start" is not possible before the Shoot was created or restored successfully`, "it is being deleted"}},
			"Shoot a/b: rotate-ca-start is not possible while the cluster is hibernated or wakes up, and before the Shoot was created or restored successfully: it is being deleted",
		},
		"another operation": {
			NotPossibleError{Object: "Garden local", Operation: "rotate-ca-start", Reasons: []string{"rotate-serviceaccount-key-start: the Garden is being deleted"}},
			"Garden local: rotate-ca-start is not possible: rotate-serviceaccount-key-start: the Garden is being deleted",
		},
	} {
		t.Run(name, func(t *testing.T) { assert.EqualError(t, &c.err, c.want) })
	}
}

// Who waits for a rotation hears what that waits for.
func TestOutcomeOfARotation(t *testing.T) {
	live := &unstructured.Unstructured{}
	require.NoError(t, json.Unmarshal([]byte(`{"apiVersion": "operator.gardener.cloud/v1alpha1", "kind": "Garden", "metadata": {"name": "local"}, "status": {
		"lastOperation": {"type": "Reconcile", "state": "Succeeded", "progress": 100, "description": "done.", "lastUpdateTime": "2026-01-01T12:00:05Z"},
		"credentials": {"rotation": {"certificateAuthorities": {"phase": "Prepared"}}}}}`), live))
	text, ended, err := outcomeOf(live, noon)
	require.NoError(t, err)
	assert.True(t, ended)
	assert.Equal(t, "Reconcile Succeeded (100%): done; rotation of certificateAuthorities: Prepared; when all clients have changed over, ask for rotate-ca-complete", text)
	text, ended, err = outcomeOf(live, noon.Add(time.Minute))
	require.NoError(t, err)
	assert.False(t, ended, "it has ended before")
	assert.Equal(t, "it was taken up", text)
}
