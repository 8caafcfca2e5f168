// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	deletionConfirmation      = `metadata: {annotations: {confirmation.gardener.cloud/deletion: "true"}}`
	deletionConfirmationField = "metadata.annotations[confirmation.gardener.cloud/deletion]"
)

// TestWithAPIServer uses a real API server with all definitions and the webhooks.
func TestWithAPIServer(t *testing.T) {
	w := newTestServer(t)
	for _, part := range []struct {
		name  string
		check func(*testing.T, *testServer)
	}{
		{"corpus", checkCorpus},
		{"rules", checkRules},
		{"one Garden", checkOneGarden},
		{"deletions", checkDeletions},
		{"namespace garden", checkNamespaceGarden},
		{"finalizers", checkFinalizers},
		{"status", checkStatusUpdate},
		{"defaults", checkDefaults},
		{"immutable fields", checkImmutableFields},
		{"webhooks that are down", checkWithoutWebhook}, // last, because they do not return
	} {
		t.Run(part.name, func(t *testing.T) { part.check(t, w) })
	}
}

// assertDeniedAt asserts that the webhook denied a request at one field.
func assertDeniedAt(t *testing.T, err error, field, typ string) {
	t.Helper()
	require.Error(t, err)
	_, fields, byWebhook := errorsOfServer(t, err)
	assert.True(t, byWebhook || apierrors.IsInvalid(err), "%v", err)
	assert.Equal(t, []string{field}, fields)
	var status apierrors.APIStatus
	require.ErrorAs(t, err, &status)
	assert.EqualValues(t, typ, status.Status().Details.Causes[0].Type)
}

func checkOneGarden(t *testing.T, w *testServer) {
	first, err := w.createUnvalidated(t, validObject(t, "Garden"))
	require.NoError(t, err)
	second := mergeYAML(t, validObject(t, "Garden"), `metadata: {name: second}`)
	assertDeniedAt(t, w.api.Create(w.ctx, second), "metadata.name", "FieldValueForbidden")

	changed := mergeYAML(t, first, `metadata: {labels: {a: b}}`)
	require.NoError(t, w.api.Update(w.ctx, changed), "the one that is there can be changed")
	w.forceDelete(first)
	require.NoError(t, w.api.Create(w.ctx, second, client.DryRunAll), "nothing is in its way any more")
	assertDeniedAt(t, w.api.Create(w.ctx, mergeYAML(t, second, `metadata: {finalizers: [gardener.cloud/operator]}`)), "metadata.finalizers[0]", "FieldValueForbidden")
}

func checkDeletions(t *testing.T, w *testServer) {
	for _, c := range []struct {
		kind      string
		protected bool
	}{{"Garden", true}, {"Seed", true}, {"Shoot", true}, {"Project", true}, {"ShootState", true}, {"extensions.Infrastructure", true},
		{"ExposureClass", false}, {"CloudProfile", false}, {"ManagedResource", false}} {
		t.Run(c.kind, func(t *testing.T) {
			live, err := w.createUnvalidated(t, validObject(t, c.kind))
			require.NoError(t, err)
			if c.protected {
				assertDeniedAt(t, w.api.Delete(w.ctx, live), deletionConfirmationField, "FieldValueForbidden")
				assertDeniedAt(t, w.api.DeleteAllOf(w.ctx, live, client.InNamespace(live.GetNamespace())), deletionConfirmationField, "FieldValueForbidden")
				live = mergeYAML(t, live, deletionConfirmation)
				require.NoError(t, w.api.Update(w.ctx, live))
			}
			require.NoError(t, w.api.Delete(w.ctx, live))
		})
	}
}

func checkNamespaceGarden(t *testing.T, w *testServer) {
	namespace := &corev1.Namespace{}
	namespace.Name = "garden"
	require.NoError(t, w.api.Delete(w.ctx, namespace.DeepCopy(), client.DryRunAll), "there is no Garden")
	_, err := w.createUnvalidated(t, validObject(t, "Garden"))
	require.NoError(t, err)
	err = w.api.Delete(w.ctx, namespace.DeepCopy())
	require.ErrorContains(t, err, "remove the Garden first")
	assert.True(t, apierrors.IsInvalid(err))
	other := &corev1.Namespace{}
	other.Name = "another"
	require.NoError(t, w.api.Create(w.ctx, other))
	require.NoError(t, w.api.Delete(w.ctx, other))
}

// checkFinalizers: an object that breaks a rule can only be changed by fixing it, unless it is
// being deleted.
func checkFinalizers(t *testing.T, w *testServer) {
	broken := mergeYAML(t, validObject(t, "Garden"), `{metadata: {finalizers: [gardener.cloud/operator]}, spec: {virtualCluster: {kubernetes: {version: "1.99.0"}}}}`)
	live, err := w.createUnvalidated(t, broken)
	require.NoError(t, err)
	free := mergeYAML(t, live, `metadata: {finalizers: null}`)
	assertDeniedAt(t, w.api.Update(w.ctx, free), "spec.virtualCluster.kubernetes.version", "FieldValueNotSupported")

	require.NoError(t, w.unvalidated.Delete(w.ctx, live))
	require.NoError(t, w.unvalidated.Get(w.ctx, client.ObjectKeyFromObject(live), live))
	require.NotNil(t, live.GetDeletionTimestamp())
	assertDeniedAt(t, w.api.Update(w.ctx, mergeYAML(t, live, `spec: {virtualCluster: {maintenance: {timeWindow: {begin: 230000+0100, end: 000000+0100}}}}`), client.DryRunAll), "spec.virtualCluster.kubernetes.version", "FieldValueNotSupported")
	require.NoError(t, w.api.Update(w.ctx, mergeYAML(t, live, `metadata: {finalizers: null}`)))
	assert.True(t, apierrors.IsNotFound(w.api.Get(w.ctx, client.ObjectKeyFromObject(live), live)))
}

// checkStatusUpdate: controllers may write the status of objects that break a rule.
func checkStatusUpdate(t *testing.T, w *testServer) {
	live, err := w.createUnvalidated(t, mergeYAML(t, validObject(t, "Shoot"), `spec: {kubernetes: {version: "1.99.0"}}`))
	require.NoError(t, err)
	live = mergeYAML(t, live, `status: {technicalID: shoot--local--local, hibernated: true, gardener: {id: a, name: b, version: c}, uid: d}`)
	require.NoError(t, w.api.Status().Update(w.ctx, live))
}

func checkDefaults(t *testing.T, w *testServer) {
	for _, c := range []struct {
		kind, over string
		path       []string
		want       any
	}{
		{"Garden", `spec: {runtimeCluster: {networking: {ipFamilies: null}}}`, []string{"spec", "runtimeCluster", "networking", "ipFamilies"}, []any{"IPv4"}},
		{"Garden", `spec: {virtualCluster: {kubernetes: {kubeAPIServer: null}}}`, []string{"spec", "virtualCluster", "kubernetes", "kubeAPIServer", "requests", "maxNonMutatingInflight"}, int64(400)},
		{"Garden", `spec: {virtualCluster: {gardener: {gardenerAPIServer: {encryptionConfig: null}}}}`, []string{"spec", "virtualCluster", "gardener", "gardenerAPIServer", "encryptionConfig", "provider", "type"}, "aescbc"},
		{"Seed", `spec: {settings: null}`, []string{"spec", "settings", "scheduling", "visible"}, true},
		{"Shoot", `spec: {purpose: null}`, []string{"spec", "purpose"}, "evaluation"},
		{"Shoot", `spec: {schedulerName: null}`, []string{"spec", "schedulerName"}, "default-scheduler"},
		{"CloudProfile", `spec: {volumeTypes: [{name: a, class: b}]}`, []string{"spec", "volumeTypes"}, []any{map[string]any{"name": "a", "class": "b", "usable": true}}},
		{"Project", `spec: {members: [{kind: User, name: a}]}`, []string{"spec", "members"}, []any{map[string]any{"kind": "User", "name": "a", "apiGroup": "rbac.authorization.k8s.io", "role": "viewer"}}},
	} {
		t.Run(c.kind+" "+c.over, func(t *testing.T) {
			live := mergeYAML(t, validObject(t, c.kind), c.over)
			w.ensureNamespace(live)
			require.NoError(t, w.api.Create(w.ctx, live))
			t.Cleanup(func() { w.forceDelete(live) })
			value, _, err := unstructured.NestedFieldNoCopy(live.Object, c.path...)
			require.NoError(t, err)
			assert.Equal(t, c.want, value)
			again := live.DeepCopy()
			require.NoError(t, w.api.Update(w.ctx, again))
			assert.Equal(t, live.GetResourceVersion(), again.GetResourceVersion(), "the second time adds nothing")
		})
	}
}

// checkWithoutWebhook: without the webhook, Gardener's kinds cannot be changed, but all others can.
func checkWithoutWebhook(t *testing.T, w *testServer) {
	w.stop()
	assert.True(t, apierrors.IsInternalError(w.api.Create(w.ctx, validObject(t, "ExposureClass"))))
	for _, kind := range []string{"ConfigMap", "Secret"} {
		object := decodeObject(t, "apiVersion: v1\nkind: "+kind+"\nmetadata: {name: a, namespace: garden}")
		require.NoError(t, w.api.Create(w.ctx, object))
		require.NoError(t, w.api.Update(w.ctx, mergeYAML(t, object, `data: {a: aGk=}`)))
		require.NoError(t, w.api.Delete(w.ctx, object))
	}
	other := &corev1.Namespace{}
	other.Name = "yet-another"
	require.NoError(t, w.api.Create(w.ctx, other))
	require.NoError(t, w.api.Delete(w.ctx, other))
}
