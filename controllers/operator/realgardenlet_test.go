// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/change"
	"github.com/pergola-dev/pergola/controllers/gardenlet"
	"github.com/pergola-dev/pergola/controllers/seedpublication"
	"github.com/pergola-dev/pergola/hack/apiserver"
	"github.com/pergola-dev/pergola/health/condition"
	"github.com/pergola-dev/pergola/source/gittest"
	"github.com/pergola-dev/pergola/source/receiver"
)

// startGardenlet runs a real gardenlet for the demonstration's Seed until stop is called.
func (w *testEnv) startGardenlet(seed *rest.Config) (stop func()) {
	w.Helper()
	g, err := gardenlet.New(gardenlet.Options{
		Seed: "local", Garden: testServer.config, Local: seed, Catalogue: smallCatalogue(w.T), Holder: "test", Version: "test",
		Timing: gardenlet.Timing{HeartbeatInterval: 100 * time.Millisecond, CareInterval: 300 * time.Millisecond, RetryInterval: testInterval},
		Log:    slog.New(slog.NewTextHandler(w.Output(), nil)),
	})
	require.NoError(w, err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- g.Run(ctx) }()
	return func() {
		cancel()
		require.NoError(w, <-ended)
	}
}

// TestOperatorWithRealGardenlet runs both: a push of an overlay is done when the gardenlet has
// applied it. The Landscape shows deletions that the gardenlet holds because no review shows them,
// until they are approved there.
func TestOperatorWithRealGardenlet(t *testing.T) {
	w := newTestEnv(t)
	w.Cleanup(func() {
		// The namespace may not exist.
		_ = w.client.DeleteAllOf(context.Background(), &corev1.ConfigMap{}, client.InNamespace(seedpublication.SeedNamespace("local")))
	})
	config := apiserver.Start(t)
	scheme := runtime.NewScheme()
	require.NoError(t, clientgoscheme.AddToScheme(scheme))
	onSeed, err := client.New(config, client.Options{Scheme: scheme})
	require.NoError(t, err)
	overlay := func(value string, names ...string) map[string]string {
		text := ""
		for _, name := range names {
			text += "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + ", namespace: shoot--local--local}\ndata: {value: \"" + value + "\"}\n"
		}
		return map[string]string{"components/shoot/b/kustomization.yaml": "resources: [x.yaml]\n", "components/shoot/b/x.yaml": text}
	}
	there := func(name string) string {
		cm := &corev1.ConfigMap{}
		if err := onSeed.Get(context.Background(), client.ObjectKey{Namespace: "shoot--local--local", Name: name}, cm); err != nil {
			require.NoError(t, client.IgnoreNotFound(err))
			return ""
		}
		return cm.Data["value"]
	}
	s := w.newShootLandscape("together", overlay("1", "x", "z"))
	w.createSecret("hook", map[string]string{"token": "hook-token"})
	w.startOperator(func(r *Role) { r.Catalogue = smallCatalogue(t) })
	w.followServed(s, repositoryURL(gittest.ServeHTTP(t, s.server.Root).URL), w.addReceiver, func(spec *landscapev1alpha1.LandscapeSpec) {
		spec.Review = landscapev1alpha1.ReviewRequired
	})
	w.awaitApplied(s, "", "1")
	// Git does not name the Shoot's Seed, so that no difference of revisions shows its objects.
	w.changeShootAs("gardener-scheduler", func(spec map[string]any) { spec["seedName"] = "local" })
	stop := w.startGardenlet(config)
	defer func() { stop() }()
	w.eventually("the Shoot is on the seed", func() bool { return there("x") == "1" && there("z") == "1" })
	w.awaitLandscape(s.name, func(l *landscapev1alpha1.Landscape) bool {
		return condition.Get(l.Status.Conditions, landscapev1alpha1.LandscapeGardenletsWorking) == nil
	})

	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	handle, err := NewLandscapeClient(testServer.config, receiver.Key{Namespace: w.namespace, Name: s.name}, clock.RealClock{}, "ada")
	require.NoError(t, err)
	// pushed pushes, and returns the final progress, all lines and the value on the seed.
	pushed := func(commit, object string) (end receiver.Progress, lines, value string) {
		t.Helper()
		var told []string
		end, _, err := w.receiverClient().RequestSync(ctx, w.namespace+"/"+s.name+"/push", receiver.Push{Ref: "refs/heads/main", Commit: commit, Pusher: commit}, func(p receiver.Progress) { told = append(told, p.Phase+" "+p.Message) })
		require.NoError(t, err)
		return end, strings.Join(told, "\n"), there(object)
	}
	end, lines, value := pushed(s.push("another value", overlay("2", "x", "z")), "x")
	assert.Equal(t, receiver.PhaseApplied, end.Phase, end)
	assert.Equal(t, "2", value, "it is over when it is on the seed")
	assert.Contains(t, lines, "waiting for the gardenlets: Seed local")

	end, _, value = pushed(s.push("one less", overlay("2", "x")), "z")
	assert.Equal(t, receiver.PhaseHeld, end.Phase, end)
	assert.Equal(t, "2", value, "it is held")
	assert.Contains(t, end.Message, "1 deletion or recreation on seed local waits for an approval")
	l := w.awaitLandscape(s.name, func(l *landscapev1alpha1.Landscape) bool { return len(l.Status.Held) == 1 && hasHeldDeletions(l) })
	h := l.Status.Held[0]
	assert.Equal(t, landscapev1alpha1.HeldDeletion{Cluster: "local", Object: "ConfigMap shoot--local--local/z", Reason: "it is not in the reviewed difference", Why: change.Reason{Code: landscapev1alpha1.HeldNotReviewed}, Approval: h.Approval}, h)
	assert.Contains(t, end.Message, "pergola approve "+w.namespace+"/"+s.name+" local/"+h.Approval+" approves them")
	assert.Equal(t, landscapev1alpha1.SyncHeld, l.Status.History[0].Result)
	assert.Empty(t, l.Status.History[0].Gardenlets)

	// A restarted gardenlet still holds it.
	stop()
	stop = w.startGardenlet(config)
	asked, err := handle.Sync(ctx)
	require.NoError(t, err)
	for p := range handle.Follow(ctx, asked) {
		end = p
	}
	assert.Equal(t, receiver.PhaseHeld, end.Phase, end)
	assert.Contains(t, end.Message, h.Approval)

	require.NoError(t, handle.Approve(ctx, []string{h.Approval}, false))
	w.eventually("it passes", func() bool { return there("z") == "" })
	w.awaitLandscape(s.name, func(l *landscapev1alpha1.Landscape) bool { return len(l.Status.Held) == 0 && !hasHeldDeletions(l) })
	w.awaitLandscape(s.name, func(l *landscapev1alpha1.Landscape) bool {
		return condition.Get(l.Status.Conditions, landscapev1alpha1.LandscapeGardenletsWorking) == nil
	})
	assert.Equal(t, "2", there("x"))

	// An object that returns and is removed once more needs another approval.
	end, _, value = pushed(s.push("there again", overlay("3", "x", "z")), "z")
	assert.Equal(t, receiver.PhaseApplied, end.Phase, end)
	assert.Equal(t, "3", value)
	end, _, value = pushed(s.push("one less again", overlay("3", "x")), "z")
	assert.Equal(t, receiver.PhaseHeld, end.Phase, end)
	assert.Equal(t, "3", value)
	l = w.awaitLandscape(s.name, func(l *landscapev1alpha1.Landscape) bool { return len(l.Status.Held) == 1 })
	assert.NotEqual(t, h.Approval, l.Status.Held[0].Approval)
}
