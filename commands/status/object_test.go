// SPDX-License-Identifier: Apache-2.0

package status

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
	"github.com/pergola-dev/pergola/api/crds"
	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/components"
	"github.com/pergola-dev/pergola/controllers/landscape"
	"github.com/pergola-dev/pergola/hack/apiserver"
	"github.com/pergola-dev/pergola/landscapes"
)

const commit = "0a1b2c3d4e5f60718293a4b5c6d7e8f901234567"

// healthyObject is the state of a Landscape object without problems.
func healthyObject(changes ...func(*landscape.ObjectStatus)) *landscape.ObjectStatus {
	o := &landscape.ObjectStatus{Namespace: "garden", Name: "local", Revision: "main@sha1:" + commit, Ready: true, Reason: "Applied", Message: "it is applied"}
	for _, c := range changes {
		c(o)
	}
	return o
}

func withReady(ready bool, reason, message string) func(*landscape.ObjectStatus) {
	return func(o *landscape.ObjectStatus) { o.Ready, o.Reason, o.Message = ready, reason, message }
}

func withSuspension(s *landscapev1alpha1.Suspension) func(*landscape.ObjectStatus) {
	return func(o *landscape.ObjectStatus) { o.Ready, o.Suspension = false, s }
}

func withPin(o *landscape.ObjectStatus) {
	o.Pin = &landscapev1alpha1.Pin{Revision: commit, By: "bob", Reason: "the new image\ncrashes"}
}

func withFailure(o *landscape.ObjectStatus) {
	end := metav1.NewTime(noon.Add(-5 * time.Minute))
	o.FailedSync = &landscapev1alpha1.SyncRecord{Revision: "main@sha1:" + strings.Repeat("f", 40), Result: landscapev1alpha1.SyncFailed, EndTime: &end, Message: "no quota"}
}

func withWaits(w landscape.PendingCauses) func(*landscape.ObjectStatus) {
	return func(o *landscape.ObjectStatus) { o.PendingCauses = w }
}

func withHeld(h landscape.HeldCounts) func(*landscape.ObjectStatus) {
	return func(o *landscape.ObjectStatus) { o.Held = h }
}

// TestPrintOfTheLandscapeObject: problems of the Landscape object are printed first,
// independent of the tree.
func TestPrintOfTheLandscapeObject(t *testing.T) {
	later := metav1.NewTime(noon.Add(2 * time.Hour))
	const head = "Synced from Git by Landscape garden/local: main@0a1b2c3d4e is applied\n"
	type changes []func(*landscape.ObjectStatus)
	for name, test := range map[string]struct {
		changes changes
		want    string
	}{
		"all is well":          {nil, head},
		"suspended for a time": {changes{withSuspension(&landscapev1alpha1.Suspension{Reason: "etcd is\nrestored", By: "alice", Until: &later})}, head + "  SUSPENDED by alice until 2026-01-01T14:00:00Z: etcd is restored\n"},
		"suspended, by whom?":  {changes{withReady(false, "Suspended", "suspended"), withSuspension(&landscapev1alpha1.Suspension{})}, head + "  SUSPENDED until pergola resume\n"},
		"not any more, and nobody has seen it": {
			changes{withReady(false, "Suspended", "suspended")}, head + "  ✗ it is no longer suspended, but the operator has not continued yet\n",
		},
		"pinned": {changes{withPin}, head + "  PINNED to " + commit + " by bob: the new image crashes\n"},
		"failed": {
			changes{withFailure, withReady(false, "ApplyFailed", "no quota"+strings.Repeat(" for it", 100)+": ask for more")},
			head + "  ✗ the last sync failed 5m ago, at revision main@ffffffffff: no quota" + strings.Repeat(" for it", 100) + ": ask for more\n",
		},
		"another reason": {changes{withReady(false, "SourceNotReady", "no\nsuch branch")}, head + "  ✗ SourceNotReady: no such branch\n"},
		"never looked at": {
			changes{withReady(false, "", ""), func(o *landscape.ObjectStatus) { o.Revision = "" }},
			"Synced from Git by Landscape garden/local: no revision was applied completely yet\n  ✗ the operator has not reconciled it yet\n",
		},
		"operations wait": {changes{withWaits(landscape.PendingCauses{Operations: "operation a: nobody\ndoes it"})}, head + "  … operation a: nobody does it\n"},
		"a window is closed": {
			changes{withReady(true, "Waiting", "main@sha1:a is applied; main@sha1:b: waiting for the next window")},
			head + "  … a sync waits: main@sha1:a is applied; main@sha1:b: waiting for the next window\n",
		},
		"the first one waits":    {changes{withReady(false, "Waiting", "waiting for Landscape base")}, head + "  ✗ a sync waits: waiting for Landscape base\n"},
		"one is held":            {changes{withHeld(landscape.HeldCounts{Count: 1})}, head + "  … 1 held deletion or recreation waits for approval: pergola history garden/local\n"},
		"some are held":          {changes{withHeld(landscape.HeldCounts{Count: 3})}, head + "  … 3 held deletions and recreations wait for approval: pergola history garden/local\n"},
		"many are held":          {changes{withHeld(landscape.HeldCounts{Count: 50, IsMinimum: true})}, head + "  … at least 50 held deletions and recreations wait for approval: pergola history garden/local\n"},
		"as many as are said":    {changes{withHeld(landscape.HeldCounts{Count: 214})}, head + "  … 214 held deletions and recreations wait for approval: pergola history garden/local\n"},
		"gardenlets are at work": {changes{withWaits(landscape.PendingCauses{Gardenlets: "waiting for the gardenlets: Seed a"})}, head + "  … waiting for the gardenlets: Seed a\n"},
		"another one is missing": {changes{withWaits(landscape.PendingCauses{Dependencies: "Landscape base does not exist"})}, head + "  … Landscape base does not exist\n"},
		"all at once": {
			changes{withSuspension(&landscapev1alpha1.Suspension{Reason: "x", By: "alice"}), withPin, withFailure, withHeld(landscape.HeldCounts{Count: 2})},
			head + "  SUSPENDED by alice until pergola resume: x\n  PINNED to " + commit + " by bob: the new image crashes\n" +
				"  ✗ the last sync failed 5m ago, at revision main@ffffffffff: no quota\n  … 2 held deletions and recreations wait for approval: pergola history garden/local\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, "Landscape local: not ready\n"+test.want+"Conditions are judged now; nothing was written.\n",
				printedStatus(landscape.Status{Landscape: "local", At: noon, Live: true, Object: healthyObject(test.changes...)}))
		})
	}
}

// TestStatusFindsTheLandscapeObject uses an API server. Without the CRD there is no object. It is
// found in any namespace, or in garden with permissions there only. Without permissions the status
// says so and prints the tree.
func TestStatusFindsTheLandscapeObject(t *testing.T) {
	apiserver.SkipIfUnavailable(t)
	l, _, err := landscapes.Load(t.Context(), "../../landscapes/local", landscapes.Options{})
	require.NoError(t, err)
	status := func(config *rest.Config) landscape.Status {
		t.Helper()
		c, err := landscape.New(l, landscape.Options{Catalogue: components.FS, Connections: landscape.Connections{KubectlFlags: map[string]string{landscape.Runtime: "--context run"}, Configs: map[string]*rest.Config{landscape.Runtime: config, landscape.Virtual: config, "local": config}}, Clock: clocktesting.NewFakeClock(noon)})
		require.NoError(t, err)
		defer c.Close()
		return c.Status(testContext(t), landscape.StatusOptions{})
	}
	clients, err := kubernetes.NewForConfig(server.config)
	require.NoError(t, err)
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
		_, err := clients.CoreV1().Namespaces().Apply(testContext(t), corev1ac.Namespace(namespace), metav1.ApplyOptions{FieldManager: "test"})
		require.NoError(t, err)
		resource := client.Resource(landscapev1alpha1.SchemeGroupVersion.WithResource("landscapes")).Namespace(namespace)
		made, err := resource.Create(testContext(t), &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "landscape.pergola.dev/v1alpha1", "kind": "Landscape", "metadata": map[string]any{"name": name}, "spec": spec,
		}}, metav1.CreateOptions{})
		require.NoError(t, err)
		// The deletion of the CRD alone would delete it later.
		t.Cleanup(func() { assert.NoError(t, resource.Delete(context.Background(), name, metav1.DeleteOptions{})) })
		applied, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&landscapev1alpha1.LandscapeStatus{
			LastAppliedRevision: "main@sha1:" + commit,
			Conditions: []gardencorev1beta1.Condition{{
				Type: landscapev1alpha1.LandscapeReady, Status: gardencorev1beta1.ConditionTrue, Reason: "Applied", Message: "it is applied",
				LastTransitionTime: metav1.NewTime(noon), LastUpdateTime: metav1.NewTime(noon),
			}},
		})
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
	leases, lease := clients.CoordinationV1().Leases("garden"), "gardener-operator-leader-election"
	s := status(server.config)
	require.NotNil(t, s.Object)
	assert.Contains(t, printedStatus(s), "  ✗ no operator runs, so nothing is synced: its lease garden/gardener-operator-leader-election never had a holder\n"+
		"    see kubectl --context run -n garden get pods -l app.kubernetes.io/component=operator; if it was scaled down, kubectl --context run -n garden scale")
	assert.NotContains(t, printedStatus(s), "pergola apply", "it would be in the way of the operator")
	at := metav1.NewMicroTime(noon.Add(-time.Second))
	_, err = leases.Create(testContext(t), &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: lease}, Spec: coordinationv1.LeaseSpec{RenewTime: &at, HolderIdentity: ptr.To("operator")},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	t.Cleanup(func() {
		assert.NoError(t, leases.Delete(context.Background(), lease, metav1.DeleteOptions{}))
	})
	s = status(server.config)
	require.NotNil(t, s.Object)
	assert.Equal(t, &landscape.ObjectStatus{
		Namespace: "elsewhere", Name: "local", Reason: "Applied", Message: "it is applied", Revision: "main@sha1:" + commit,
		Suspension: &landscapev1alpha1.Suspension{Reason: "x", By: "alice"},
	}, s.Object)
	assert.False(t, s.Ready)
	assert.Contains(t, printedStatus(s), "Landscape local: not ready\nSynced from Git by Landscape elsewhere/local: main@0a1b2c3d4e is applied\n  SUSPENDED by alice until pergola resume: x\n├─ ")

	nobody := rest.CopyConfig(server.config)
	nobody.Impersonate.UserName = "nobody"
	s = status(nobody)
	assert.Nil(t, s.Object)
	assert.Contains(t, s.ObjectUnknown, "nobody")
	assert.Contains(t, printedStatus(s), "  ? a suspension or pin of the Landscape in the runtime cluster is unknown: ")
	assert.NotEmpty(t, s.Owners)
}

// TestStatusOfHeldDeletionsOnSeeds: deletions that gardenlets hold are also printed at the Seed.
func TestStatusOfHeldDeletionsOnSeeds(t *testing.T) {
	v := statusPrinter{status: landscape.Status{Object: healthyObject(withHeld(landscape.HeldCounts{Count: 4, ByCluster: map[string]int{"virtual": 1, "eu-1": 1, "eu-2": 2}}))}}
	held := func(name string) []treeNode {
		return v.ownerBranch(landscape.OwnerStatus{Kind: "Seed", Name: name}).children
	}
	assert.Equal(t, []treeNode{{text: "… 1 deletion or recreation is held on it until approved: pergola history garden/local"}}, held("eu-1"))
	assert.Equal(t, []treeNode{{text: "… 2 deletions and recreations are held on it until approved: pergola history garden/local"}}, held("eu-2"))
	assert.Empty(t, held("eu-3"))
}
