// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/pergola-dev/pergola/change"
)

func TestDriftIsReportedAndRepaired(t *testing.T) {
	f := newFixture(t)
	events := make(chan DriftEvent, 100)
	ctx, cancel := context.WithCancel(f.ctx)
	defer cancel()
	set := f.set(f.configMap("edited", "right"), f.configMap("deleted", "x"), f.deployment("d", 1))
	f.mustApply(set)
	go f.e.WatchDrift(ctx, f.c, func(e DriftEvent) { events <- e })
	f.eventually("the watch is on", func() bool {
		f.c.mu.Lock()
		defer f.c.mu.Unlock()
		return len(f.c.changeHandlers) > 0
	})

	f.patch(f.configMap("edited", ""), "kubectl-edit", `{"data":{"key":"wrong","more":"by hand"}}`)
	e := <-events
	assert.Equal(t, "edited", e.Ref.Name)
	assert.Equal(t, []change.Field{{Path: "data.key", Old: "right", New: "wrong", Manager: "kubectl-edit"}}, e.Fields)

	require.NoError(t, f.resource(f.configMap("deleted", "")).Delete(f.ctx, "deleted", metav1.DeleteOptions{}))
	e = <-events
	assert.Equal(t, "deleted", e.Ref.Name)
	assert.True(t, e.Deleted)

	// Fields of others are not drift.
	f.patch(f.deployment("d", 1), "kubectl-annotate", `{"metadata":{"annotations":{"note":"mine"}}}`)
	f.patch(f.deployment("d", 1), "kube-controller-manager", `{"status":{"replicas":1,"observedGeneration":1}}`, "status")

	r := f.mustApply(set)
	assert.Equal(t, map[string]Action{"ConfigMap/edited": Configured, "ConfigMap/deleted": Created, "Deployment/d": Unchanged}, actions(r))
	assert.Equal(t, map[string]any{"key": "right", "more": "by hand"}, nested(f.get(f.configMap("edited", "")), "data"))
	assert.Empty(t, f.requests(func() { f.mustApply(set) }))
	assert.Empty(t, events, "our own repair is no drift")
}

// TestDriftBeforeTheWatchIsReported: changes between an apply and the watch are reported. A run
// applies an object now and watches much later.
func TestDriftBeforeTheWatchIsReported(t *testing.T) {
	f := newFixture(t)
	set := f.set(f.configMap("edited", "right"), f.configMap("deleted", "x"), f.configMap("same", "x"))
	f.mustApply(set)
	f.patch(f.configMap("edited", ""), "kubectl-edit", `{"data":{"key":"wrong"}}`)
	require.NoError(t, f.resource(f.configMap("deleted", "")).Delete(f.ctx, "deleted", metav1.DeleteOptions{}))
	f.eventually("the cache has seen it", func() bool {
		edited := f.c.Cached(Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: f.ns, Name: "edited"})
		return edited != nil && nested(edited, "data", "key") == "wrong" && f.c.Cached(Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: f.ns, Name: "deleted"}) == nil
	})
	events := make(chan DriftEvent, 10)
	ctx, cancel := context.WithCancel(f.ctx)
	defer cancel()
	go f.e.WatchDrift(ctx, f.c, func(e DriftEvent) { events <- e })
	found := map[string]bool{}
	for range 2 {
		e := <-events
		found[e.Ref.Name] = e.Deleted
	}
	assert.Equal(t, map[string]bool{"edited": false, "deleted": true}, found)
	f.mustApply(set)
	assert.Equal(t, map[string]any{"key": "right"}, nested(f.get(f.configMap("edited", "")), "data"))
	assert.Empty(t, events)
}

// TestEveryWatchReportsExistingDrift: the next watch reports unrepaired drift again, but never
// of an object to be deleted: nothing defines its state.
func TestEveryWatchReportsExistingDrift(t *testing.T) {
	f := newFixture(t)
	f.mustApply(f.set(f.configMap("stays", "1"), f.configMap("held", "1")))
	_, err := f.e.Apply(f.ctx, f.c, f.set(f.configMap("stays", "1")), f.inv, ApplyOptions{ApprovePrune: func(entries []Entry) []HeldObject {
		return []HeldObject{{Ref: entries[0].Ref, Reason: change.Reason{Detail: "not now"}}}
	}})
	require.NoError(t, err)
	for _, name := range []string{"held", "stays"} {
		f.patch(f.configMap(name, ""), "kubectl-edit", `{"data":{"key":"wrong"}}`)
	}
	for range 2 {
		events := make(chan DriftEvent, 10)
		ctx, cancel := context.WithCancel(f.ctx)
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			f.e.WatchDrift(ctx, f.c, func(e DriftEvent) { events <- e })
		}()
		assert.Equal(t, "stays", (<-events).Ref.Name)
		cancel()
		<-ended
		assert.Empty(t, events)
	}
}

func TestForeignSecretValueIsDriftWithoutValues(t *testing.T) {
	f := newFixture(t)
	secret := f.object(`{apiVersion: v1, kind: Secret, metadata: {name: s, namespace: NS}, stringData: {password: hunter2-original}}`)
	f.mustApply(f.set(secret))
	ctx, cancel := context.WithCancel(f.ctx)
	defer cancel()
	events := make(chan DriftEvent, 10)
	go f.e.WatchDrift(ctx, f.c, func(e DriftEvent) { events <- e })
	f.eventually("the watch is on", func() bool {
		f.c.mu.Lock()
		defer f.c.mu.Unlock()
		return len(f.c.changeHandlers) > 0
	})
	f.patch(secret, "kubectl-edit", `{"data":{"password":"aHVudGVyMi1zdG9sZW4="}}`)
	assert.Equal(t, []change.Field{{Path: "data.password", Hidden: true, Manager: "kubectl-edit"}}, (<-events).Fields)
	assert.Equal(t, Configured, f.mustApply(f.set(secret)).Objects[0].Action)
	assert.Empty(t, f.requests(func() { f.mustApply(f.set(secret)) }))
}

// TestIdleWatchesEnd: the watch of a kind without readers ends, and begins again on its next use.
func TestIdleWatchesEnd(t *testing.T) {
	f := newFixture(t)
	clk := testingclock.NewFakeClock(time.Now())
	c, err := newCluster("test", server.config, ClusterOptions{Clock: clk})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	f.c = c
	set := f.set(f.configMap("c", "x"))
	f.mustApply(set)
	assert.Empty(t, c.DropIdle(10*time.Minute))
	clk.Step(11 * time.Minute)
	f.mustApply(set)
	assert.Empty(t, c.DropIdle(10*time.Minute), "it was read a moment ago")
	clk.Step(11 * time.Minute)
	assert.Equal(t, []schema.GroupVersionResource{{Version: "v1", Resource: "configmaps"}}, c.DropIdle(10*time.Minute))
	assert.Equal(t, RequestCounts{"list": 1}, onlyLists(f.requests(func() { f.mustApply(set) })))
}

// onlyLists removes watches from the counts, as they begin at any time.
func onlyLists(counts RequestCounts) RequestCounts {
	delete(counts, "watch")
	return counts
}

// TestChangedSecretIsNoDrift: the event of our own write arrives after the write.
func TestChangedSecretIsNoDrift(t *testing.T) {
	f := newFixture(t)
	secret := func(value string) Set {
		return f.set(f.object(`{apiVersion: v1, kind: Secret, metadata: {name: s, namespace: NS}, stringData: {word: "` + value + `"}}`))
	}
	f.mustApply(secret("0"))
	events := make(chan DriftEvent, 100)
	ctx, cancel := context.WithCancel(f.ctx)
	defer cancel()
	go f.e.WatchDrift(ctx, f.c, func(e DriftEvent) { events <- e })
	f.eventually("the watch is on", func() bool {
		f.c.mu.Lock()
		defer f.c.mu.Unlock()
		return len(f.c.changeHandlers) > 0
	})
	for i := range 20 {
		f.mustApply(secret(fmt.Sprint(i + 1)))
	}
	last := secret("20")
	f.patch(last.Objects[0], "kubectl-edit", `{"stringData":{"word":"theirs"}}`)
	e := <-events
	assert.Equal(t, "kubectl-edit", e.Fields[0].Manager, "the first drift is a real one: %v", e)
	f.mustApply(last)
	f.patch(last.Objects[0], "kubectl-edit", `{"stringData":{"word":"theirs again"}}`)
	e = <-events
	assert.Equal(t, "data.word", e.Fields[0].Path)
	assert.Empty(t, events)
}

// TestScaleDriftNamesItsManager: kubectl scale changes the object by its scale subresource.
func TestScaleDriftNamesItsManager(t *testing.T) {
	f := newFixture(t)
	set := f.set(f.deployment("d", 1))
	f.mustApply(set)
	events := make(chan DriftEvent, 10)
	ctx, cancel := context.WithCancel(f.ctx)
	defer cancel()
	go f.e.WatchDrift(ctx, f.c, func(e DriftEvent) { events <- e })
	f.eventually("the watch is on", func() bool {
		f.c.mu.Lock()
		defer f.c.mu.Unlock()
		return len(f.c.changeHandlers) > 0
	})
	f.patch(f.deployment("d", 1), "kubectl", `{"spec":{"replicas":3}}`, "scale")
	f.patch(f.deployment("d", 1), "kube-controller-manager", `{"status":{"replicas":1,"observedGeneration":1}}`, "status")
	e := <-events
	assert.Equal(t, []change.Field{{Path: "spec.replicas", Old: int64(1), New: int64(3), Manager: "kubectl"}}, e.Fields)
}
