// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	operatorv1alpha1 "github.com/pergola-dev/pergola/api/operator/v1alpha1"
	"github.com/pergola-dev/pergola/source/gittest"
	"github.com/pergola-dev/pergola/source/receiver"
)

// readLocalFile reads a file of the demonstration landscape.
func readLocalFile(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile("../../landscapes/local/" + name)
	require.NoError(t, err)
	return string(text)
}

// emptySecrets are the Secrets that it refers to, without encrypted content.
func emptySecrets(cluster string, names ...string) string {
	var out strings.Builder
	for _, name := range names {
		fmt.Fprintf(&out, "---\napiVersion: v1\nkind: Secret\nmetadata: {name: %s, namespace: garden, annotations: {landscape.pergola.dev/cluster: %s}}\ntype: Opaque\n", name, cluster)
	}
	return out.String()
}

// TestSupersededSync: a newer revision supersedes one that waits for health. The history and the
// answer to its push say so, and the newer one is applied.
func TestSupersededSync(t *testing.T) {
	w := newTestEnv(t)
	s := w.newServedRepository("superseded")
	w.createSecret("hook", map[string]string{"token": "hook-token"})
	w.cleanGarden()
	w.startOperator(func(r *Role) { r.Catalogue = smallCatalogue(t) })
	w.followServed(s, repositoryURL(gittest.ServeHTTP(t, s.server.Root).URL), w.addReceiver)
	w.awaitApplied(s, "", "1")
	first := s.push("a garden", map[string]string{
		"garden.yaml":  readLocalFile(t, "garden/garden.yaml"),
		"secrets.yaml": emptySecrets("runtime", "garden-dns-local", "virtual-garden-etcd-main-backup-local"),
		"a.yaml":       s.configMap(s.name, "2"),
	})
	type end struct {
		receiver.Progress
		followed bool
		err      error
	}
	told := make(chan end, 1)
	ask := func(commit string, tell func(receiver.Progress)) end {
		var e end
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		e.Progress, e.followed, e.err = w.receiverClient().RequestSync(ctx, w.namespace+"/"+s.name+"/push", receiver.Push{Ref: "refs/heads/main", Commit: commit, Pusher: commit}, tell)
		return e
	}
	go func() { told <- ask(first, func(receiver.Progress) {}) }()
	l := w.awaitLandscape(s.name, func(l *landscapev1alpha1.Landscape) bool {
		return strings.Contains(readyText(l), first) && l.Status.LastOperation != nil && strings.Contains(l.Status.LastOperation.Description, "slow")
	})
	assert.True(t, strings.HasPrefix(readyText(l), "Unknown Pending"), readyText(l))
	slow := &appsv1.Deployment{}
	require.NoError(t, w.client.Get(context.Background(), client.ObjectKey{Namespace: "garden", Name: "slow"}, slow))
	assert.Equal(t, "2", w.configMapValue(s.name))

	second := s.pushValue("3")
	followed := make(chan end, 1)
	go func() { followed <- ask(second, func(receiver.Progress) {}) }()
	e := <-told
	require.NoError(t, e.err)
	assert.True(t, e.followed)
	assert.Equal(t, receiver.PhaseSuperseded, e.Phase, e.Progress)
	assert.True(t, e.Done)
	assert.Contains(t, e.Message, second)
	w.eventually("the newer one is applied", func() bool { return w.configMapValue(s.name) == "3" })
	l = w.awaitLandscape(s.name, func(l *landscapev1alpha1.Landscape) bool {
		return len(l.Status.History) >= 2 && strings.HasSuffix(l.Status.History[0].Revision, second) && l.Status.History[1].EndTime != nil
	})
	assert.True(t, strings.HasSuffix(l.Status.History[1].Revision, first))
	assert.Equal(t, landscapev1alpha1.SyncSuperseded, l.Status.History[1].Result)
	assert.Equal(t, "superseded by main@sha1:"+second, l.Status.History[1].Message)
	assert.Nil(t, l.Status.History[0].EndTime, "it waits as well")
	assert.False(t, strings.HasSuffix(l.Status.LastAppliedRevision, first))

	// Once the Deployment is ready, the waiting objects are applied.
	status := fmt.Sprintf(`{"status":{"observedGeneration":%d,"replicas":1,"updatedReplicas":1,"readyReplicas":1,"availableReplicas":1,"conditions":[`+
		`{"type":"Available","status":"True","reason":"x","message":"x"},{"type":"Progressing","status":"True","reason":"NewReplicaSetAvailable","message":"x"}]}}`, slow.Generation)
	require.NoError(t, w.client.Status().Patch(context.Background(), slow, client.RawPatch(types.MergePatchType, []byte(status))))
	e = <-followed
	require.NoError(t, e.err)
	assert.Equal(t, receiver.PhaseApplied, e.Phase, e.Progress)
	l = w.awaitLandscape(s.name, func(l *landscapev1alpha1.Landscape) bool {
		return strings.HasSuffix(l.Status.LastAppliedRevision, second)
	})
	assert.Equal(t, landscapev1alpha1.SyncSucceeded, l.Status.History[0].Result)
	require.NoError(t, w.client.Get(context.Background(), client.ObjectKey{Namespace: "garden", Name: "after"}, &corev1.ConfigMap{}))
}

// cleanGarden deletes the Garden and its namespace's objects after the test.
func (w *testEnv) cleanGarden() {
	w.Cleanup(func() {
		ctx := context.Background()
		for _, kind := range []client.Object{&appsv1.Deployment{}, &corev1.ConfigMap{}, &corev1.Secret{}} {
			require.NoError(w, w.client.DeleteAllOf(ctx, kind, client.InNamespace("garden")))
		}
		// Finalizers protect objects that the Garden refers to.
		var kept corev1.SecretList
		require.NoError(w, w.client.List(ctx, &kept, client.InNamespace("garden")))
		for i := range kept.Items {
			patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
			require.NoError(w, client.IgnoreNotFound(w.client.Patch(ctx, &kept.Items[i], patch)))
		}
		garden := &unstructured.Unstructured{}
		garden.SetGroupVersionKind(operatorv1alpha1.SchemeGroupVersion.WithKind("Garden"))
		garden.SetName("local")
		require.NoError(w, client.IgnoreNotFound(w.client.Patch(ctx, garden, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null,"annotations":{"confirmation.gardener.cloud/deletion":"true"}}}`)))))
		require.NoError(w, client.IgnoreNotFound(w.client.Delete(ctx, garden)))
	})
}
