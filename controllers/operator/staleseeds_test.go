// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/controllers/seedpublication"
	"github.com/pergola-dev/pergola/source/gittest"
	"github.com/pergola-dev/pergola/source/receiver"
)

// writeHeartbeat writes a heartbeat of the demonstration Seed's gardenlet.
func (w *testEnv) writeHeartbeat(at time.Time) {
	w.Helper()
	ctx := context.Background()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: gardencorev1beta1.GardenerSystemSeedLeaseNamespace}}
	_ = w.client.Create(ctx, namespace) // it may exist
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: namespace.Name, Name: "local"}}
	require.NoError(w, client.IgnoreNotFound(w.client.Delete(ctx, lease.DeepCopy())))
	lease.Spec.HolderIdentity, lease.Spec.RenewTime = ptr.To("local"), ptr.To(metav1.NewMicroTime(at))
	w.create(lease)
	w.Cleanup(func() { _ = w.client.Delete(ctx, lease) })
	seed := &unstructured.Unstructured{}
	seed.SetGroupVersionKind(gardencorev1beta1.SchemeGroupVersion.WithKind("Seed"))
	seed.SetName("local")
	const ready = `{"status": {"conditions": [{"type": "GardenletReady", "status": "True", "reason": "GardenletReady", "message": "m", "lastTransitionTime": "2026-01-01T00:00:00Z", "lastUpdateTime": "2026-01-01T00:00:00Z"}]}}`
	require.NoError(w, w.client.Status().Patch(ctx, seed, client.RawPatch(types.MergePatchType, []byte(ready))))
}

// TestStaleGardenletsAreReported: a sync does not wait until its timeout for gardenlets that do not
// work or do not report. It reports them at once.
func TestStaleGardenletsAreReported(t *testing.T) {
	w := newTestEnv(t)
	w.Cleanup(func() {
		// The namespace may not exist.
		_ = w.client.DeleteAllOf(context.Background(), &corev1.ConfigMap{}, client.InNamespace(seedpublication.SeedNamespace("local")))
	})
	overlay := func(value string) map[string]string {
		return map[string]string{"components/shoot/b/kustomization.yaml": "resources: [x.yaml]\n",
			"components/shoot/b/x.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x, namespace: shoot--local--local}\ndata: {value: \"" + value + "\"}\n"}
	}
	files := overlay("1")
	files["shoot.yaml"] = strings.Replace(shootFile(t), "  region: local\n", "  region: local\n  seedName: local\n", 1)
	s := w.newShootLandscape("silent", files)
	w.createSecret("hook", map[string]string{"token": "hook-token"})
	w.startOperator(func(r *Role) { r.Catalogue = smallCatalogue(t) })
	w.followServed(s, repositoryURL(gittest.ServeHTTP(t, s.server.Root).URL), w.addReceiver)
	w.awaitApplied(s, "", "1")
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	pushed := func(commit string) receiver.Progress {
		t.Helper()
		end, _, err := w.receiverClient().RequestSync(ctx, w.namespace+"/"+s.name+"/push", receiver.Push{Ref: "refs/heads/main", Commit: commit, Pusher: commit}, func(receiver.Progress) {})
		require.NoError(t, err)
		return end
	}

	// The first sync waits for the changed Seed and Shoot until it detects that their gardenlet
	// does not work.
	w.writeHeartbeat(time.Now().Add(-10 * time.Minute))
	l := w.awaitLandscape(s.name, func(l *landscapev1alpha1.Landscape) bool {
		return len(l.Status.History) > 0 && l.Status.History[0].Gardenlets != ""
	})
	const gone = "the gardenlet of seed local does not work: local last renewed its lease gardener-system-seed-lease/local 10m ago; not reconciled until it works: Seed local"
	assert.Equal(t, gone+", Shoot garden-local/local", l.Status.History[0].Gardenlets)
	end := pushed(s.push("another overlay", overlay("2")))
	assert.Equal(t, receiver.PhaseFailed, end.Phase, end)
	assert.True(t, end.Applied, "in the clusters of the operator")
	assert.Equal(t, gone, end.Err)

	// A working gardenlet of a version without reports.
	w.writeHeartbeat(time.Now().Add(time.Hour))
	end = pushed(s.push("a third", overlay("3")))
	assert.Equal(t, receiver.PhaseApplied, end.Phase, end)
	const mute = "Seed local: its gardenlet does not report which settings it uses (older versions do not); the sync does not wait for it"
	assert.Contains(t, end.Message, mute)
	w.awaitLandscape(s.name, func(l *landscapev1alpha1.Landscape) bool { return strings.Contains(l.Status.History[0].Message, mute) })
	assert.Empty(t, w.getLandscape(s.name).Status.History[0].Gardenlets)

	// An unreadable report does not mean that nothing is held.
	seed := &unstructured.Unstructured{}
	seed.SetGroupVersionKind(gardencorev1beta1.SchemeGroupVersion.WithKind("Seed"))
	seed.SetName("local")
	patch := `{"metadata": {"annotations": {"` + seedpublication.AnnotationReport + `": "{"}}}`
	require.NoError(t, w.client.Patch(ctx, seed, client.RawPatch(types.MergePatchType, []byte(patch))))
	const unread = "the annotation landscape.pergola.dev/seed-report of Seed local cannot be read (unexpected end of JSON input), so the held deletions and the settings of its gardenlet are unknown. "
	l = w.awaitLandscape(s.name, func(l *landscapev1alpha1.Landscape) bool { return len(l.Status.Held) == 1 })
	assert.Equal(t, "local Seed local", l.Status.Held[0].Cluster+" "+l.Status.Held[0].Object)
	assert.True(t, strings.HasPrefix(l.Status.Held[0].Reason, unread), l.Status.Held[0].Reason)
	assert.Contains(t, readyText(w.awaitLandscape(s.name, hasHeldDeletions)), unread)
	end = pushed(s.push("a fourth", overlay("4")))
	assert.Contains(t, end.Message, unread)
	w.writeSeedReport(seedpublication.SeedReport{})
	w.awaitLandscape(s.name, func(l *landscapev1alpha1.Landscape) bool { return len(l.Status.Held) == 0 })
}
