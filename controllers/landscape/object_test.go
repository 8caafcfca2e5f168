package landscape

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"
	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
	"github.com/pergola-dev/pergola/api/crds"
	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/components"
	"github.com/pergola-dev/pergola/landscapes"
)

const commit = "0a1b2c3d4e5f60718293a4b5c6d7e8f901234567"

func landscapeObject(change ...func(*landscapev1alpha1.Landscape)) *landscapev1alpha1.Landscape {
	l := &landscapev1alpha1.Landscape{}
	l.Namespace, l.Name = "garden", "local"
	l.Status.LastAppliedRevision = "main@sha1:" + commit
	isReady(gardencorev1beta1.ConditionTrue, "Applied", "it is applied")(l)
	for _, c := range change {
		c(l)
	}
	return l
}

func isReady(status gardencorev1beta1.ConditionStatus, reason, message string) func(*landscapev1alpha1.Landscape) {
	return func(l *landscapev1alpha1.Landscape) {
		at := metav1.NewTime(noon)
		l.Status.Conditions = []gardencorev1beta1.Condition{{
			Type: landscapev1alpha1.LandscapeReady, Status: status, Reason: reason, Message: message, LastTransitionTime: at, LastUpdateTime: at,
		}}
	}
}

func suspended(s *landscapev1alpha1.Suspension) func(*landscapev1alpha1.Landscape) {
	return func(l *landscapev1alpha1.Landscape) { l.Spec.Suspend, l.Spec.Suspension = true, s }
}

func pinned(l *landscapev1alpha1.Landscape) {
	l.Spec.Pin = &landscapev1alpha1.Pin{Revision: commit, By: "bob", Reason: "the new image\ncrashes"}
}

func failed(l *landscapev1alpha1.Landscape) {
	end := metav1.NewTime(noon.Add(-5 * time.Minute))
	l.Status.History = []landscapev1alpha1.SyncRecord{{Revision: "main@sha1:" + strings.Repeat("f", 40), Result: landscapev1alpha1.SyncFailed, EndTime: &end, Message: "no quota"}}
}

func isTrue(kind gardencorev1beta1.ConditionType, message string) func(*landscapev1alpha1.Landscape) {
	return func(l *landscapev1alpha1.Landscape) {
		l.Status.Conditions = append(l.Status.Conditions, gardencorev1beta1.Condition{Type: kind, Status: gardencorev1beta1.ConditionTrue, Message: message})
	}
}

func held(n int) func(*landscapev1alpha1.Landscape) {
	return func(l *landscapev1alpha1.Landscape) {
		l.Status.Held = slices.Repeat([]landscapev1alpha1.HeldDeletion{{Approval: "id"}}, n)
	}
}

// The head of a status says what stands between Git and the clusters, whatever the tree looks like.
func TestStatusSaysWhatTheLandscapeObjectSays(t *testing.T) {
	later, sooner := metav1.NewTime(noon.Add(2*time.Hour)), metav1.NewTime(noon.Add(-time.Second))
	const head = "Synced from Git by Landscape garden/local: main@0a1b2c3d4e is applied\n"
	for name, test := range map[string]struct {
		change []func(*landscapev1alpha1.Landscape)
		ready  bool
		want   string
	}{
		"all is well":          {nil, true, head},
		"suspended for a time": {[]func(*landscapev1alpha1.Landscape){suspended(&landscapev1alpha1.Suspension{Reason: "etcd is\nrestored", By: "alice", Until: &later})}, false, head + "  SUSPENDED by alice until 2026-01-01T14:00:00Z: etcd is restored\n"},
		"suspended, by whom?":  {[]func(*landscapev1alpha1.Landscape){suspended(nil), isReady("Unknown", "Suspended", "suspended")}, false, head + "  SUSPENDED until pergola resume\n"},
		"not any more":         {[]func(*landscapev1alpha1.Landscape){suspended(&landscapev1alpha1.Suspension{Reason: "x", Until: &sooner})}, true, head},
		"not any more, and nobody has seen it": {
			[]func(*landscapev1alpha1.Landscape){suspended(&landscapev1alpha1.Suspension{Reason: "x", Until: &sooner}), isReady("Unknown", "Suspended", "suspended")}, false,
			head + "  ✗ it is not suspended any more, and the operator has not gone on yet\n",
		},
		"pinned": {[]func(*landscapev1alpha1.Landscape){pinned}, true, head + "  PINNED to " + commit + " by bob: the new image crashes\n"},
		"failed": {
			[]func(*landscapev1alpha1.Landscape){failed, isReady("False", "ApplyFailed", "no quota"+strings.Repeat(" for it", 100)+": ask for more")}, false,
			head + "  ✗ the last sync failed 5m ago, of main@ffffffffff: no quota" + strings.Repeat(" for it", 100) + ": ask for more\n",
		},
		"another reason": {[]func(*landscapev1alpha1.Landscape){isReady("False", "SourceNotReady", "no\nsuch branch")}, false, head + "  ✗ SourceNotReady: no such branch\n"},
		"never looked at": {[]func(*landscapev1alpha1.Landscape){func(l *landscapev1alpha1.Landscape) { l.Status = landscapev1alpha1.LandscapeStatus{} }}, false,
			"Synced from Git by Landscape garden/local: nothing was applied completely yet\n  ✗ the operator has not looked at it yet\n"},
		"operations wait": {[]func(*landscapev1alpha1.Landscape){func(l *landscapev1alpha1.Landscape) {
			l.Status.Conditions = append(l.Status.Conditions, gardencorev1beta1.Condition{Type: landscapev1alpha1.LandscapeOperationsWaiting, Status: gardencorev1beta1.ConditionTrue, Message: "operation a: nobody\ndoes it"})
		}}, true, head + "  … operation a: nobody does it\n"},
		"a window is closed": {
			[]func(*landscapev1alpha1.Landscape){isReady("True", "Waiting", "main@sha1:a is applied; main@sha1:b: waiting for the next window")}, true,
			head + "  … a sync waits: main@sha1:a is applied; main@sha1:b: waiting for the next window\n",
		},
		"the first one waits": {[]func(*landscapev1alpha1.Landscape){isReady("Unknown", "Waiting", "waiting for Landscape base")}, false, head + "  ✗ a sync waits: waiting for Landscape base\n"},
		"one is held":         {[]func(*landscapev1alpha1.Landscape){held(1)}, true, head + "  … 1 held deletion or recreation waits for approval: pergola history garden/local\n"},
		"some are held":       {[]func(*landscapev1alpha1.Landscape){held(3)}, true, head + "  … 3 held deletions and recreations wait for approval: pergola history garden/local\n"},
		"many are held":       {[]func(*landscapev1alpha1.Landscape){held(50)}, true, head + "  … at least 50 held deletions and recreations wait for approval: pergola history garden/local\n"},
		"as many as are said": {[]func(*landscapev1alpha1.Landscape){held(50), func(l *landscapev1alpha1.Landscape) {
			l.Status.HeldCount = 214
		}}, true, head + "  … 214 held deletions and recreations wait for approval: pergola history garden/local\n"},
		"gardenlets are at work": {[]func(*landscapev1alpha1.Landscape){isTrue(landscapev1alpha1.LandscapeGardenletsWorking, "waiting for the gardenlets: Seed a")}, true, head + "  … waiting for the gardenlets: Seed a\n"},
		"another one is missing": {[]func(*landscapev1alpha1.Landscape){isTrue(landscapev1alpha1.LandscapeDependenciesMissing, "Landscape base does not exist")}, true, head + "  … Landscape base does not exist\n"},
		"all at once": {
			[]func(*landscapev1alpha1.Landscape){suspended(&landscapev1alpha1.Suspension{Reason: "x", By: "alice"}), pinned, failed, held(2)}, false,
			head + "  SUSPENDED by alice until pergola resume: x\n  PINNED to " + commit + " by bob: the new image crashes\n" +
				"  ✗ the last sync failed 5m ago, of main@ffffffffff: no quota\n  … 2 held deletions and recreations wait for approval: pergola history garden/local\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := objectStatus(landscapeObject(test.change...), noon)
			assert.Equal(t, test.ready, o.Ready)
			assert.Equal(t, "Landscape local: not ready\n"+test.want+"Conditions are judged now; nothing was written.\n", text(Status{Landscape: "local", At: noon, Live: true, Object: o}))
		})
	}
}

// On a real API server: without the kind there is no such object; one is found in any namespace, or in garden where no more may be
// read; who may not read it at all is told so, and gets the tree.
func TestStatusFindsTheLandscapeObject(t *testing.T) {
	needsServer(t)
	l, _, err := landscapes.Load(t.Context(), "../../landscapes/local", landscapes.Options{})
	require.NoError(t, err)
	status := func(config *rest.Config) Status {
		t.Helper()
		c, err := New(l, Options{Catalogue: components.FS, Connect: Connections{Flags: map[string]string{Runtime: "--context run"}, Configs: map[string]*rest.Config{Runtime: config, Virtual: config, "local": config}}, Clock: clocktesting.NewFakeClock(noon)})
		require.NoError(t, err)
		defer c.Close()
		return c.Status(testContext(t), StatusOptions{})
	}
	without := status(server.config)
	assert.Nil(t, without.Object)
	assert.Empty(t, without.ObjectUnknown)

	definitions := envtest.CRDInstallOptions{CRDs: crds.ByGroup("landscape.pergola.dev")}
	_, err = envtest.InstallCRDs(server.config, definitions)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, envtest.UninstallCRDs(server.config, definitions)) })
	assert.Nil(t, status(server.config).Object, "there is none of that name")

	client, err := dynamic.NewForConfig(server.config)
	require.NoError(t, err)
	create := func(namespace, name string, spec map[string]any) {
		t.Helper()
		_, err := testClient(t).CoreV1().Namespaces().Apply(testContext(t), corev1ac.Namespace(namespace), metav1.ApplyOptions{FieldManager: "test"})
		require.NoError(t, err)
		resource := client.Resource(landscapev1alpha1.SchemeGroupVersion.WithResource("landscapes")).Namespace(namespace)
		made, err := resource.Create(testContext(t), &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "landscape.pergola.dev/v1alpha1", "kind": "Landscape", "metadata": map[string]any{"name": name}, "spec": spec,
		}}, metav1.CreateOptions{})
		require.NoError(t, err)
		applied, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&landscapeObject().Status)
		require.NoError(t, err)
		made.Object["status"] = applied
		_, err = resource.UpdateStatus(testContext(t), made, metav1.UpdateOptions{})
		require.NoError(t, err)
	}
	source := map[string]any{"url": "https://git.example.org/landscapes"}
	create("garden", "other", map[string]any{"source": source})
	create("garden", "local", map[string]any{})
	assert.Nil(t, status(server.config).Object, "nobody syncs one without a source")
	create("elsewhere", "local", map[string]any{"source": source, "suspend": true, "suspension": map[string]any{"reason": "x", "by": "alice"}})
	// Other tests that share the server have had it.
	require.NoError(t, ctrlclient.IgnoreNotFound(testClient(t).CoordinationV1().Leases(leaseNamespace).Delete(testContext(t), leaseOperator, metav1.DeleteOptions{})))
	s := status(server.config)
	require.NotNil(t, s.Object)
	assert.Contains(t, text(s), "  ✗ no operator runs, and nothing is synced: nobody ever had its lease garden/gardener-operator-leader-election\n"+
		"    see kubectl --context run -n garden get pods -l app.kubernetes.io/component=operator; if it was scaled down, kubectl --context run -n garden scale")
	assert.NotContains(t, text(s), "pergola apply", "it would be in the way of the operator")
	lease := renewed("operator", time.Second)
	lease.Name = leaseOperator
	_, err = testClient(t).CoordinationV1().Leases(leaseNamespace).Create(testContext(t), lease, metav1.CreateOptions{})
	require.NoError(t, err)
	t.Cleanup(func() {
		assert.NoError(t, testClient(t).CoordinationV1().Leases(leaseNamespace).Delete(context.Background(), leaseOperator, metav1.DeleteOptions{}))
	})
	s = status(server.config)
	require.NotNil(t, s.Object)
	assert.Equal(t, &ObjectStatus{
		Namespace: "elsewhere", Name: "local", Reason: "Applied", Message: "it is applied", Revision: "main@sha1:" + commit,
		Suspension: &landscapev1alpha1.Suspension{Reason: "x", By: "alice"},
	}, s.Object)
	assert.False(t, s.Ready)
	assert.Contains(t, text(s), "Landscape local: not ready\nSynced from Git by Landscape elsewhere/local: main@0a1b2c3d4e is applied\n  SUSPENDED by alice until pergola resume: x\n├─ ")

	nobody := rest.CopyConfig(server.config)
	nobody.Impersonate.UserName = "nobody"
	s = status(nobody)
	assert.Nil(t, s.Object)
	assert.Contains(t, s.ObjectUnknown, "nobody")
	assert.Contains(t, text(s), "  ? whether a Landscape of the runtime cluster is suspended or pinned is not known: ")
	assert.NotEmpty(t, s.Owners)
}

// What gardenlets hold stands with the Seed, too.
func TestStatusSaysWhatASeedHolds(t *testing.T) {
	l := &landscapev1alpha1.Landscape{}
	l.Namespace, l.Name = "garden", "local"
	l.Status.Held = []landscapev1alpha1.HeldDeletion{{Cluster: "virtual", Approval: "a"}, {Cluster: "eu-1", Approval: "b"}, {Cluster: "eu-2", Approval: "b"}, {Cluster: "eu-2", Approval: "c"}, {Cluster: "eu-2", Object: "stuck"}}
	v := view{status: Status{Object: objectStatus(l, noon)}}
	held := func(name string) []branch { return v.owner(OwnerStatus{Kind: "Seed", Name: name}).children }
	assert.Equal(t, []branch{{text: "… 1 deletion or recreation is held on it for an approval: pergola history garden/local"}}, held("eu-1"))
	assert.Equal(t, []branch{{text: "… 2 deletions and recreations are held on it for an approval: pergola history garden/local"}}, held("eu-2"))
	assert.Empty(t, held("eu-3"))
}
