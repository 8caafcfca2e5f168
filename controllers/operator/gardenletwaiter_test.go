// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/change"
	"github.com/pergola-dev/pergola/controllers/conventions"
	"github.com/pergola-dev/pergola/controllers/seedpublication"
	"github.com/pergola-dev/pergola/health/condition"
	"github.com/pergola-dev/pergola/source"
	"github.com/pergola-dev/pergola/source/gittest"
	"github.com/pergola-dev/pergola/source/receiver"
)

// writeSeedReport writes a report of the demonstration Seed's gardenlet.
func (w *testEnv) writeSeedReport(r seedpublication.SeedReport) {
	w.Helper()
	text, err := json.Marshal(r)
	require.NoError(w, err)
	seed := &unstructured.Unstructured{}
	seed.SetGroupVersionKind(gardencorev1beta1.SchemeGroupVersion.WithKind("Seed"))
	seed.SetName("local")
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]any{seedpublication.AnnotationReport: string(text)}}})
	require.NoError(w, err)
	require.NoError(w, w.client.Patch(context.Background(), seed, client.RawPatch(types.MergePatchType, patch)))
}

// markReconciled writes the status of a reconciled Seed or Shoot.
func (w *testEnv) markReconciled(kind, namespace string) {
	w.Helper()
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(gardencorev1beta1.SchemeGroupVersion.WithKind(kind))
	require.NoError(w, w.client.Get(context.Background(), client.ObjectKey{Namespace: namespace, Name: "local"}, o))
	patch := fmt.Sprintf(`{"status": {"observedGeneration": %d, "lastOperation": {"type": "Reconcile", "state": "Succeeded", "progress": 100, "description": "done", "lastUpdateTime": "2026-01-01T00:00:00Z"}}}`, o.GetGeneration())
	require.NoError(w, w.client.Status().Patch(context.Background(), o, client.RawPatch(types.MergePatchType, []byte(patch))))
}

func TestPublishedText(t *testing.T) {
	j := &job{}
	assert.Empty(t, publishedText(j.takePublishedSeeds()))
	for _, seed := range []string{"b", "a"} {
		j.recordPublication(seed, seedpublication.PublishResult{ChangedObjects: 2})
		j.recordPublication("same", seedpublication.PublishResult{})
	}
	assert.Equal(t, "settings and overlays were published for the gardenlets of seeds a, b", publishedText(j.takePublishedSeeds()))
	assert.Empty(t, j.takePublishedSeeds(), "it is told once")
	assert.Equal(t, "settings and overlays were published for the gardenlets of seeds a, b, c, and 2 more", publishedText([]string{"a", "b", "c", "d", "e"}))
}

// TestSyncWaitsForPublication: a push of an overlay is done when the gardenlets have
// applied it, for followers of the push and of the object. The Landscape then holds their held
// deletions, and their failures are failures of the sync.
func TestSyncWaitsForPublication(t *testing.T) {
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
	s := w.newShootLandscape("taken-up", files)
	w.createSecret("hook", map[string]string{"token": "hook-token"})
	w.startOperator(func(r *Role) { r.Catalogue = smallCatalogue(t) })
	w.followServed(s, repositoryURL(gittest.ServeHTTP(t, s.server.Root).URL), w.addReceiver)
	working := func(want string) func(*landscapev1alpha1.Landscape) bool {
		return func(l *landscapev1alpha1.Landscape) bool {
			c := condition.Get(l.Status.Conditions, landscapev1alpha1.LandscapeGardenletsWorking)
			return c == nil && want == "" || c != nil && want != "" && strings.Contains(c.Message, want)
		}
	}
	w.awaitApplied(s, "", "1")
	w.awaitLandscape(s.name, working("waiting for the gardenlets: "))
	w.awaitLandscape(s.name, working("Seed local, which has no gardenlet yet, Shoot garden-local/local on seed local"))
	digest := func() string { return w.seedConfigMap(seedpublication.PointerName).Data["digest"] }
	w.writeSeedReport(seedpublication.SeedReport{Digest: digest()})
	w.markReconciled("Seed", "")
	w.markReconciled("Shoot", "garden-local")
	w.awaitLandscape(s.name, working(""))

	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	// pushed pushes, follows both ways, and returns the final lines.
	pushed := func(commit string, gardenlet func()) (ends [2]receiver.Progress, lines string) {
		t.Helper()
		handle, err := NewLandscapeClient(testServer.config, receiver.Key{Namespace: w.namespace, Name: s.name}, clock.RealClock{}, "ada")
		require.NoError(t, err)
		asked, err := handle.Sync(ctx)
		require.NoError(t, err)
		pusher := make(chan receiver.Progress, 1)
		go func() {
			var told []string
			last, _, err := w.receiverClient().RequestSync(ctx, w.namespace+"/"+s.name+"/push", receiver.Push{Ref: "refs/heads/main", Commit: commit, Pusher: commit}, func(p receiver.Progress) { told = append(told, p.Phase+" "+p.Message) })
			if err != nil {
				last.Err = err.Error()
			}
			lines = strings.Join(told, "\n")
			pusher <- last
		}()
		w.awaitLandscape(s.name, func(l *landscapev1alpha1.Landscape) bool {
			return strings.HasSuffix(l.Status.LastAppliedRevision, commit)
		})
		w.awaitLandscape(s.name, working("waiting for the gardenlets: Seed local"))
		gardenlet()
		for p := range handle.Follow(ctx, asked) {
			ends[1] = p
		}
		select {
		case ends[0] = <-pusher:
		case <-ctx.Done():
			require.Fail(t, "the pusher is not told the end")
		}
		w.awaitLandscape(s.name, working(""))
		return ends, lines
	}
	const shoot = "Shoot garden-local/local"
	ends, lines := pushed(s.push("another overlay", overlay("2")), func() {
		w.writeSeedReport(seedpublication.SeedReport{Digest: digest(), Converging: []string{shoot}})
		w.awaitLandscape(s.name, working("Seed local: 1 to reconcile with the publication: "+shoot))
		w.writeSeedReport(seedpublication.SeedReport{Digest: digest()})
	})
	for _, end := range ends {
		assert.Equal(t, receiver.PhaseApplied, end.Phase, end)
		assert.Contains(t, end.Message, "settings and overlays were published for the gardenlet of seed local")
		assert.NotContains(t, end.Message, "there was nothing to write")
	}
	assert.Contains(t, lines, "Waiting settings and overlays were published for the gardenlet of seed local; waiting for the gardenlets: Seed local\nWaiting Seed local: 1 to reconcile with the publication: "+shoot)

	held := seedpublication.HeldObject{Owner: shoot, Cluster: "local", Object: "ConfigMap shoot--local--local/x", Reason: change.Reason{Code: landscapev1alpha1.HeldNotReviewed}, Approval: "0123456789ab"}
	// A change of the Seed alone affects its Shoots: their held deletions are held at the end, too.
	seed := readLocalFile(t, "seeds/local.yaml") + emptySecrets("virtual", "seed-dns-local", "backup-local")
	require.Contains(t, seed, "169.254.169.254/32")
	files = overlay("2") // nothing else is published
	files["seed.yaml"] = strings.Replace(seed, "169.254.169.254/32", "169.254.169.253/32", 1)
	ends, lines = pushed(s.push("the Seed", files), func() {
		w.writeSeedReport(seedpublication.SeedReport{Digest: digest(), Converging: []string{shoot}})
		w.markReconciled("Seed", "")
		w.awaitLandscape(s.name, working("Seed local: 1 to reconcile with it: "+shoot))
		w.writeSeedReport(seedpublication.SeedReport{Digest: digest(), Held: []seedpublication.HeldObject{held}})
	})
	for _, end := range ends {
		assert.Equal(t, receiver.PhaseHeld, end.Phase, end)
		assert.Contains(t, end.Message, "1 deletion or recreation on seed local waits for an approval")
	}
	assert.NotContains(t, lines, "settings and overlays were published")
	w.writeSeedReport(seedpublication.SeedReport{Digest: digest()})
	w.awaitLandscape(s.name, func(l *landscapev1alpha1.Landscape) bool { return len(l.Status.Held) == 0 })

	// The Landscape shows the held deletions with the approve command.
	ends, _ = pushed(s.push("a third", overlay("3")), func() {
		w.writeSeedReport(seedpublication.SeedReport{Digest: digest(), Held: []seedpublication.HeldObject{held}})
	})
	for _, end := range ends {
		assert.Equal(t, receiver.PhaseHeld, end.Phase, end)
		assert.Contains(t, end.Message, "1 deletion or recreation on seed local waits for an approval")
		assert.Contains(t, end.Message, "pergola approve "+w.namespace+"/"+s.name+" local/0123456789ab approves them")
	}
	l := w.getLandscape(s.name)
	assert.Equal(t, []landscapev1alpha1.HeldDeletion{{Cluster: "local", Object: held.Object, Reason: held.Reason.String(), Why: held.Reason, Approval: held.Approval}}, l.Status.Held)
	assert.True(t, hasHeldDeletions(l))
	assert.Equal(t, landscapev1alpha1.SyncHeld, l.Status.History[0].Result)
	assert.Contains(t, readyText(l), "on seed local waits for an approval")
	w.eventually("it is told once", func() bool { return len(w.eventTexts(s.name, reasonHeld)) == 1 })
	handle, err := NewLandscapeClient(testServer.config, receiver.Key{Namespace: w.namespace, Name: s.name}, clock.RealClock{}, "ada")
	require.NoError(t, err)
	require.NoError(t, handle.Approve(ctx, []string{"0123456789ab"}, false), "it can be approved like what the operator holds")
	w.writeSeedReport(seedpublication.SeedReport{Digest: digest()})
	l = w.awaitLandscape(s.name, func(l *landscapev1alpha1.Landscape) bool { return len(l.Status.Held) == 0 })
	w.awaitLandscape(s.name, func(l *landscapev1alpha1.Landscape) bool { return !hasHeldDeletions(l) })
	assert.Equal(t, []string{"local/0123456789ab"}, l.Spec.Approved, "it counts on that seed alone")
	assert.NotContains(t, l.Status.UsedApprovals, "local/0123456789ab", "the gardenlet says when it was used")

	// the approval is published
	w.awaitLandscape(s.name, working("waiting for the gardenlets: Seed local"))
	w.writeSeedReport(seedpublication.SeedReport{Digest: digest()})
	w.awaitLandscape(s.name, working(""))
	ends, _ = pushed(s.push("a fourth", overlay("4")), func() {
		w.writeSeedReport(seedpublication.SeedReport{Digest: digest(), Failing: []string{shoot}})
	})
	for _, end := range ends {
		assert.Equal(t, receiver.PhaseFailed, end.Phase, end)
		assert.Contains(t, end.Err, "Seed local: "+shoot)
	}
	assert.Contains(t, w.getLandscape(s.name).Status.History[0].Gardenlets, shoot)
}

// TestReportsAreReread: the cached reports may be older than the reconciliations that
// they cover.
func TestReportsAreReread(t *testing.T) {
	w := newTestEnv(t)
	seed := &unstructured.Unstructured{}
	require.NoError(t, yaml.Unmarshal([]byte(readLocalFile(t, "seeds/local.yaml")), seed))
	require.NoError(t, w.client.Create(context.Background(), seed))
	t.Cleanup(func() { require.NoError(t, w.client.Delete(context.Background(), seed)) })
	held := seedpublication.HeldObject{Owner: "Seed local", Cluster: "local", Object: "ConfigMap a/b", Reason: change.Reason{Code: landscapev1alpha1.HeldNotReviewed}, Approval: "0123456789ab"}
	w.writeSeedReport(seedpublication.SeedReport{Held: []seedpublication.HeldObject{held}})
	virtual, err := conventions.NewCluster("virtual", testServer.config, apply.ClusterOptions{})
	require.NoError(t, err)
	t.Cleanup(virtual.Close)
	old := &seedpublication.SeedReport{}
	reports := map[string]*seedpublication.SeedReport{"local": old, "other": old, "gone": old}
	(&gardenletWaiter{virtual: virtual, seedStates: seedStates{finished: map[string]bool{"local": true, "gone": true, "elsewhere": true}}}).rereadReports(context.Background(), reports)
	assert.Equal(t, map[string]*seedpublication.SeedReport{"local": {Held: []seedpublication.HeldObject{held}}, "other": old, "gone": old}, reports)
}

func TestFollowersState(t *testing.T) {
	seed := &unstructured.Unstructured{Object: map[string]any{"kind": "Seed"}}
	seed.SetName("local")
	state, text := followersState(seed, "done")
	assert.Equal(t, "Succeeded done", fmt.Sprint(state, " ", text), "one without a report is not waited for")
	seed.SetAnnotations(map[string]string{seedpublication.AnnotationReport: `{"converging": ["Shoot a/b", "Shoot a/c"], "convergingMore": 3, "failing": ["Shoot a/d"]}`})
	state, text = followersState(seed, "done")
	assert.Equal(t, "Processing 5 to reconcile with it: Shoot a/b, Shoot a/c, and 3 more", fmt.Sprint(state, " ", text))
	seed.SetAnnotations(map[string]string{seedpublication.AnnotationReport: `{"failing": ["Shoot a/d"]}`})
	state, _ = followersState(seed, "done")
	assert.Equal(t, gardencorev1beta1.LastOperationStateSucceeded, state, "those that cannot be reconciled fail for themselves")
	w := &gardenletWaiter{reconciler: &landscapeReconciler{operator: &runningOperator{role: &Role{Clock: clock.RealClock{}}}, broadcaster: &progressBroadcaster{}}, job: &job{revision: &revision{Snapshot: &source.Snapshot{}}}, lastLines: map[string]string{}}
	w.recordFailingDependents(&awaitedOwner{ref: seedRef("local")}, seed)
	assert.Equal(t, []string{"Seed local: 1 cannot be reconciled with it: Shoot a/d"}, w.notes, "but it is said")
	seed.SetAnnotations(map[string]string{seedpublication.AnnotationReport: `{"converging": ["Shoot a/b"], "failing": ["Seed local"]}`})
	state, text = followersState(seed, "Succeeded (100%): done")
	assert.Equal(t, "Error its gardenlet reports that part of it failed, and retries; see its log; Succeeded (100%): done", fmt.Sprint(state, " ", text), "the Shoots wait for it")
}
