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

// reports writes a report of the demonstration Seed's gardenlet.
func (w *world) reports(r seedpublication.Report) {
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

// succeeded writes the status of a reconciled Seed or Shoot.
func (w *world) succeeded(kind, namespace string) {
	w.Helper()
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(gardencorev1beta1.SchemeGroupVersion.WithKind(kind))
	require.NoError(w, w.client.Get(context.Background(), client.ObjectKey{Namespace: namespace, Name: "local"}, o))
	patch := fmt.Sprintf(`{"status": {"observedGeneration": %d, "lastOperation": {"type": "Reconcile", "state": "Succeeded", "progress": 100, "description": "done", "lastUpdateTime": "2026-01-01T00:00:00Z"}}}`, o.GetGeneration())
	require.NoError(w, w.client.Status().Patch(context.Background(), o, client.RawPatch(types.MergePatchType, []byte(patch))))
}

func TestPublishedText(t *testing.T) {
	j := &job{}
	assert.Empty(t, publishedText(j.takePublished()))
	for _, seed := range []string{"b", "a"} {
		j.published(seed, seedpublication.Outcome{Changed: 2})
		j.published("same", seedpublication.Outcome{})
	}
	assert.Equal(t, "settings and overlays were published for the gardenlets of seeds a, b", publishedText(j.takePublished()))
	assert.Empty(t, j.takePublished(), "it is told once")
	assert.Equal(t, "settings and overlays were published for the gardenlets of seeds a, b, c, and 2 more", publishedText([]string{"a", "b", "c", "d", "e"}))
}

// TestGardenletsTakeUpWhatIsPublished: a push of an overlay is done when the gardenlets have
// applied it, for followers of the push and of the object. The Landscape then holds their held
// deletions, and their failures are failures of the sync.
func TestGardenletsTakeUpWhatIsPublished(t *testing.T) {
	w := newWorld(t)
	w.Cleanup(func() {
		// The namespace may not exist.
		_ = w.client.DeleteAllOf(context.Background(), &corev1.ConfigMap{}, client.InNamespace(seedpublication.Namespace("local")))
	})
	overlay := func(value string) map[string]string {
		return map[string]string{"components/shoot/b/kustomization.yaml": "resources: [x.yaml]\n",
			"components/shoot/b/x.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x, namespace: shoot--local--local}\ndata: {value: \"" + value + "\"}\n"}
	}
	files := overlay("1")
	files["shoot.yaml"] = strings.Replace(shootFile(t), "  region: local\n", "  region: local\n  seedName: local\n", 1)
	s := w.shoots("taken-up", files)
	w.secret("hook", map[string]string{"token": "hook-token"})
	w.start(func(r *Role) { r.Catalogue = smallCatalogue(t) })
	w.follow(s, repositoryURL(gittest.ServeHTTP(t, s.bare.Root).URL), w.hooked)
	working := func(want string) func(*landscapev1alpha1.Landscape) bool {
		return func(l *landscapev1alpha1.Landscape) bool {
			c := condition.Get(l.Status.Conditions, landscapev1alpha1.LandscapeGardenletsWorking)
			return c == nil && want == "" || c != nil && want != "" && strings.Contains(c.Message, want)
		}
	}
	w.applied(s, "", "1")
	w.await(s.name, working("waiting for the gardenlets: "))
	w.await(s.name, working("Seed local, which no gardenlet looks after yet, Shoot garden-local/local on seed local"))
	digest := func() string { return w.forSeed(seedpublication.PointerName).Data["digest"] }
	w.reports(seedpublication.Report{Digest: digest()})
	w.succeeded("Seed", "")
	w.succeeded("Shoot", "garden-local")
	w.await(s.name, working(""))

	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	// pushed pushes, follows both ways, and returns the final lines.
	pushed := func(commit string, gardenlet func()) (ends [2]receiver.Progress, lines string) {
		t.Helper()
		handle, err := NewHandle(server.config, receiver.Key{Namespace: w.namespace, Name: s.name}, clock.RealClock{}, "ada")
		require.NoError(t, err)
		asked, err := handle.Sync(ctx)
		require.NoError(t, err)
		pusher := make(chan receiver.Progress, 1)
		go func() {
			var told []string
			last, _, err := w.asks().Ask(ctx, w.namespace+"/"+s.name+"/push", receiver.Push{Ref: "refs/heads/main", Commit: commit, By: commit}, func(p receiver.Progress) { told = append(told, p.Phase+" "+p.Message) })
			if err != nil {
				last.Err = err.Error()
			}
			lines = strings.Join(told, "\n")
			pusher <- last
		}()
		w.await(s.name, func(l *landscapev1alpha1.Landscape) bool {
			return strings.HasSuffix(l.Status.LastAppliedRevision, commit)
		})
		w.await(s.name, working("waiting for the gardenlets: Seed local"))
		gardenlet()
		for p := range handle.Follow(ctx, asked) {
			ends[1] = p
		}
		select {
		case ends[0] = <-pusher:
		case <-ctx.Done():
			require.Fail(t, "the pusher is not told the end")
		}
		w.await(s.name, working(""))
		return ends, lines
	}
	const shoot = "Shoot garden-local/local"
	ends, lines := pushed(s.push("another overlay", overlay("2")), func() {
		w.reports(seedpublication.Report{Digest: digest(), Converging: []string{shoot}})
		w.await(s.name, working("Seed local: 1 to reconcile with what was published: "+shoot))
		w.reports(seedpublication.Report{Digest: digest()})
	})
	for _, end := range ends {
		assert.Equal(t, receiver.PhaseApplied, end.Phase, end)
		assert.Contains(t, end.Message, "settings and overlays were published for the gardenlet of seed local")
		assert.NotContains(t, end.Message, "nothing had to be written")
	}
	assert.Contains(t, lines, "Waiting settings and overlays were published for the gardenlet of seed local; waiting for the gardenlets: Seed local\nWaiting Seed local: 1 to reconcile with what was published: "+shoot)

	held := seedpublication.Held{Owner: shoot, Cluster: "local", Object: "ConfigMap shoot--local--local/x", Why: change.Reason{Code: landscapev1alpha1.HeldNotReviewed}, Approval: "0123456789ab"}
	// A change of the Seed alone affects its Shoots: their held deletions are held at the end, too.
	seed := local(t, "seeds/local.yaml") + emptySecrets("virtual", "seed-dns-local", "backup-local")
	require.Contains(t, seed, "169.254.169.254/32")
	files = overlay("2") // nothing else is published
	files["seed.yaml"] = strings.Replace(seed, "169.254.169.254/32", "169.254.169.253/32", 1)
	ends, lines = pushed(s.push("the Seed", files), func() {
		w.reports(seedpublication.Report{Digest: digest(), Converging: []string{shoot}})
		w.succeeded("Seed", "")
		w.await(s.name, working("Seed local: 1 to reconcile with it: "+shoot))
		w.reports(seedpublication.Report{Digest: digest(), Held: []seedpublication.Held{held}})
	})
	for _, end := range ends {
		assert.Equal(t, receiver.PhaseHeld, end.Phase, end)
		assert.Contains(t, end.Message, "1 deletion or recreation on seed local waits for an approval")
	}
	assert.NotContains(t, lines, "settings and overlays were published")
	w.reports(seedpublication.Report{Digest: digest()})
	w.await(s.name, func(l *landscapev1alpha1.Landscape) bool { return len(l.Status.Held) == 0 })

	// The Landscape shows the held deletions with the approve command.
	ends, _ = pushed(s.push("a third", overlay("3")), func() {
		w.reports(seedpublication.Report{Digest: digest(), Held: []seedpublication.Held{held}})
	})
	for _, end := range ends {
		assert.Equal(t, receiver.PhaseHeld, end.Phase, end)
		assert.Contains(t, end.Message, "1 deletion or recreation on seed local waits for an approval")
		assert.Contains(t, end.Message, "pergola approve "+w.namespace+"/"+s.name+" local/0123456789ab lets it pass")
	}
	l := w.get(s.name)
	assert.Equal(t, []landscapev1alpha1.HeldDeletion{{Cluster: "local", Object: held.Object, Reason: held.Why.String(), Why: held.Why, Approval: held.Approval}}, l.Status.Held)
	assert.True(t, isHeld(l))
	assert.Equal(t, landscapev1alpha1.SyncHeld, l.Status.History[0].Result)
	assert.Contains(t, readiness(l), "on seed local waits for an approval")
	w.eventually("it is told once", func() bool { return len(w.notes(s.name, reasonHeld)) == 1 })
	handle, err := NewHandle(server.config, receiver.Key{Namespace: w.namespace, Name: s.name}, clock.RealClock{}, "ada")
	require.NoError(t, err)
	require.NoError(t, handle.Approve(ctx, []string{"0123456789ab"}, false), "it can be approved like what the operator holds")
	w.reports(seedpublication.Report{Digest: digest()})
	l = w.await(s.name, func(l *landscapev1alpha1.Landscape) bool { return len(l.Status.Held) == 0 })
	w.await(s.name, func(l *landscapev1alpha1.Landscape) bool { return !isHeld(l) })
	assert.Equal(t, []string{"local/0123456789ab"}, l.Spec.Approved, "it counts on that seed alone")
	assert.NotContains(t, l.Status.UsedApprovals, "local/0123456789ab", "the gardenlet says when it was used")

	w.await(s.name, working("waiting for the gardenlets: Seed local")) // the approval is published
	w.reports(seedpublication.Report{Digest: digest()})
	w.await(s.name, working(""))
	ends, _ = pushed(s.push("a fourth", overlay("4")), func() {
		w.reports(seedpublication.Report{Digest: digest(), Failing: []string{shoot}})
	})
	for _, end := range ends {
		assert.Equal(t, receiver.PhaseFailed, end.Phase, end)
		assert.Contains(t, end.Err, "Seed local: "+shoot)
	}
	assert.Contains(t, w.get(s.name).Status.History[0].Gardenlets, shoot)
}

// TestReportsAreReadAnewAtTheEnd: the cached reports may be older than the reconciliations that
// they cover.
func TestReportsAreReadAnewAtTheEnd(t *testing.T) {
	w := newWorld(t)
	seed := &unstructured.Unstructured{}
	require.NoError(t, yaml.Unmarshal([]byte(local(t, "seeds/local.yaml")), seed))
	require.NoError(t, w.client.Create(context.Background(), seed))
	t.Cleanup(func() { require.NoError(t, w.client.Delete(context.Background(), seed)) })
	held := seedpublication.Held{Owner: "Seed local", Cluster: "local", Object: "ConfigMap a/b", Why: change.Reason{Code: landscapev1alpha1.HeldNotReviewed}, Approval: "0123456789ab"}
	w.reports(seedpublication.Report{Held: []seedpublication.Held{held}})
	virtual, err := conventions.NewCluster("virtual", server.config, apply.ClusterOptions{})
	require.NoError(t, err)
	t.Cleanup(virtual.Close)
	old := &seedpublication.Report{}
	reports := map[string]*seedpublication.Report{"local": old, "other": old, "gone": old}
	(&wait{virtual: virtual, seeds: seedsKnown{fresh: map[string]bool{"local": true, "gone": true, "elsewhere": true}}}).refresh(context.Background(), reports)
	assert.Equal(t, map[string]*seedpublication.Report{"local": {Held: []seedpublication.Held{held}}, "other": old, "gone": old}, reports)
}

func TestFollowing(t *testing.T) {
	seed := &unstructured.Unstructured{Object: map[string]any{"kind": "Seed"}}
	seed.SetName("local")
	state, text := following(seed, "done")
	assert.Equal(t, "Succeeded done", fmt.Sprint(state, " ", text), "one without a report is not waited for")
	seed.SetAnnotations(map[string]string{seedpublication.AnnotationReport: `{"converging": ["Shoot a/b", "Shoot a/c"], "convergingMore": 3, "failing": ["Shoot a/d"]}`})
	state, text = following(seed, "done")
	assert.Equal(t, "Processing 5 to reconcile with it: Shoot a/b, Shoot a/c, and 3 more", fmt.Sprint(state, " ", text))
	seed.SetAnnotations(map[string]string{seedpublication.AnnotationReport: `{"failing": ["Shoot a/d"]}`})
	state, _ = following(seed, "done")
	assert.Equal(t, gardencorev1beta1.LastOperationStateSucceeded, state, "those that cannot be reconciled fail for themselves")
	w := &wait{s: &syncer{parts: &parts{role: &Role{Clock: clock.RealClock{}}}, hub: &hub{}}, j: &job{revision: &revision{Snapshot: &source.Snapshot{}}}, told: map[string]string{}}
	w.noteFailing(&followed{ref: seedRef("local")}, seed)
	assert.Equal(t, []string{"Seed local: 1 cannot be reconciled with it: Shoot a/d"}, w.notes, "but it is said")
	seed.SetAnnotations(map[string]string{seedpublication.AnnotationReport: `{"converging": ["Shoot a/b"], "failing": ["Seed local"]}`})
	state, text = following(seed, "Succeeded (100%): done")
	assert.Equal(t, "Error its gardenlet reports that it cannot do all of it, and tries again; its log says why; Succeeded (100%): done", fmt.Sprint(state, " ", text), "the Shoots wait for it")
}
