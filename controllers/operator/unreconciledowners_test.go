// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/controllers/conventions"
	"github.com/pergola-dev/pergola/source"
)

// newGardenletWaiter returns a wait that the test polls, and its clock. It checks gardenlets only
// once the clock moves.
func (w *testEnv) newGardenletWaiter() (*gardenletWaiter, *clocktesting.FakeClock) {
	w.Helper()
	virtual, err := conventions.NewCluster("virtual", testServer.config, apply.ClusterOptions{})
	require.NoError(w, err)
	w.Cleanup(virtual.Close)
	clk := clocktesting.NewFakeClock(noon)
	s := &landscapeReconciler{operator: &runningOperator{role: &Role{Clock: clk}}, broadcaster: &progressBroadcaster{}}
	j := &job{revision: &revision{Snapshot: &source.Snapshot{}}}
	return &gardenletWaiter{reconciler: s, job: j, startedAt: noon, virtual: virtual, lastLines: map[string]string{}, seedStates: seedStates{noReportSince: map[string]time.Time{}, finished: map[string]bool{}, checkedAt: noon}}, clk
}

// createObject creates an object with Pergola's label from YAML, with its status if there is one.
func (w *testEnv) createObject(text string, change func(*unstructured.Unstructured)) *unstructured.Unstructured {
	w.Helper()
	o := &unstructured.Unstructured{}
	require.NoError(w, yaml.Unmarshal([]byte(text), &o.Object))
	keys := conventions.ManagedResourceKeys()
	o.SetLabels(map[string]string{keys.ManagedByLabel: keys.ManagedByValue})
	change(o)
	status := o.Object["status"]
	require.NoError(w, w.client.Create(context.Background(), o))
	w.Cleanup(func() {
		o.SetFinalizers(nil)
		_ = w.client.Patch(context.Background(), o.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"metadata": {"finalizers": null}}`)))
		require.NoError(w, client.IgnoreNotFound(w.client.Delete(context.Background(), o)))
	})
	if status != nil {
		patch, err := json.Marshal(map[string]any{"status": status})
		require.NoError(w, err)
		require.NoError(w, w.client.Status().Patch(context.Background(), o, client.RawPatch(types.MergePatchType, patch)))
	}
	return o
}

// TestUnreconciledOwnersAreSkipped: the sync does not wait for objects that no gardenlet
// reconciles, and reports why.
func TestUnreconciledOwnersAreSkipped(t *testing.T) {
	w := newTestEnv(t)
	for _, name := range []string{"garden", "garden-left"} {
		// The namespace may exist.
		_ = w.client.Create(context.Background(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	status := func(o *unstructured.Unstructured, seed, state string) {
		o.Object["status"] = map[string]any{"seedName": seed, "observedGeneration": int64(1), "lastOperation": map[string]any{
			"type": "Reconcile", "state": state, "progress": int64(100), "description": "d", "lastUpdateTime": "2026-01-01T00:00:00Z"}}
	}
	shoots := map[string]func(*unstructured.Unstructured){
		"new":     func(*unstructured.Unstructured) {},
		"ignored": func(o *unstructured.Unstructured) { o.SetNamespace("garden") },
		"moved":   func(o *unstructured.Unstructured) { status(o, "another", "Processing") },
		"goes":    func(o *unstructured.Unstructured) { o.SetFinalizers([]string{"example.org/test"}) },
		"failed":  func(o *unstructured.Unstructured) { status(o, "another", "Error") },
		"elsewhere": func(o *unstructured.Unstructured) {
			require.NoError(t, unstructured.SetNestedField(o.Object, "other", "spec", "seedName"))
		},
		"alone": func(o *unstructured.Unstructured) {
			require.NoError(t, unstructured.SetNestedField(o.Object, "gone", "spec", "seedName"))
		},
	}
	seed := w.createObject(readLocalFile(t, "seeds/local.yaml"), func(o *unstructured.Unstructured) { o.SetFinalizers([]string{"example.org/test"}) })
	w.createObject(readLocalFile(t, "seeds/local.yaml"), func(o *unstructured.Unstructured) {
		o.SetName("other")
		o.SetLabels(nil) // not created by Pergola
	})
	left := []*awaitedOwner{{ref: apply.RefOf(seed), isChanged: true, publicationDigest: "d"}}
	for name, change := range shoots {
		o := w.createObject(readLocalFile(t, "projects/local/shoot.yaml"), func(o *unstructured.Unstructured) {
			o.SetNamespace("garden-left")
			o.SetName(name)
			// Upstream counts it only in namespace garden.
			o.SetAnnotations(map[string]string{gardencorev1beta1.ShootIgnore: "true"})
			change(o)
		})
		if name == "goes" {
			require.NoError(t, w.client.Delete(context.Background(), o))
		}
		left = append(left, &awaitedOwner{ref: apply.RefOf(o), isChanged: true})
	}
	require.NoError(t, w.client.Delete(context.Background(), seed))

	waits, clk := w.newGardenletWaiter()
	w.eventually("it is known here", func() bool {
		for _, f := range left {
			live, err := waits.virtual.Get(context.Background(), f.ref)
			if err != nil || (f.ref.Kind == "Seed" || f.ref.Name == "goes") && live.GetDeletionTimestamp() == nil {
				return false
			}
		}
		return true
	})
	names := func() []string {
		var out []string
		for _, f := range left {
			out = append(out, ownerName(f.ref))
		}
		return out
	}
	left = waits.checkOwners(context.Background(), left)
	assert.ElementsMatch(t, []string{"Shoot garden-left/new", "Shoot garden-left/elsewhere", "Shoot garden-left/alone"}, names(), "it was not asked yet which Seeds there are")
	clk.Step(gardenletCheckInterval)
	left = waits.checkOwners(context.Background(), left)
	assert.ElementsMatch(t, []string{"Shoot garden-left/new", "Shoot garden-left/elsewhere"}, names(), "of these something may come")
	const goes = "its gardenlet ignores it, because it is being deleted, and this version does not delete its objects on the seed: delete them there manually; the sync does not wait for it"
	assert.ElementsMatch(t, []string{
		"Seed local: " + goes, "Shoot garden-left/goes: " + goes,
		"Shoot garden/ignored: its gardenlet ignores it, because annotation shoot.gardener.cloud/ignore says so; the sync does not wait for it",
		"Shoot garden-left/moved: its gardenlet ignores it, because its control plane is on seed another, and this version cannot move it (two would compete for machines); to undo, set spec.seedName to another; the sync does not wait for it",
		"Shoot garden-left/alone: Seed gone does not exist, so no gardenlet reconciles it; the sync does not wait for it",
	}, waits.notes)
	assert.Equal(t, []string{"Shoot garden-left/failed: Error (100%): d"}, waits.failures, "what has failed before is said")
}
