// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/pergola-dev/pergola/apply"
)

// TestCareIsSideBySide checks that an owner that does not answer delays no other health check.
func TestCareIsSideBySide(t *testing.T) {
	h := newTestFleet(t, 1)
	var all sync.WaitGroup
	all.Add(2)
	together := func(context.Context) { all.Done(); all.Wait() }
	h.Set(t.Context(), []Member[*fakeOwner]{{ID: "one", New: func() *fakeOwner { return &fakeOwner{hasObjects: true, onCare: together} }}, {ID: "two", New: func() *fakeOwner { return &fakeOwner{hasObjects: true, onCare: together} }}})
	done := make(chan string, 1)
	go func() { h.Care(t.Context()); done <- "done" }()
	h.expect(done, "done")
}

// TestDriftWaitsForRendering checks that drift stays queued while the objects of its owner are
// unknown, and that an interrupted repair is retried after the next run.
func TestDriftWaitsForRendering(t *testing.T) {
	h := newTestFleet(t, 1, "busy")
	one, other := &fakeOwner{hasObjects: true, repairSucceeds: true, unrendered: true}, &fakeOwner{hasObjects: true, repairSucceeds: true, hasNoObjects: true}
	h.Set(t.Context(), []Member[*fakeOwner]{{ID: "one", New: func() *fakeOwner { return one }}, {ID: "other", New: func() *fakeOwner { return other }}})
	assert.True(t, h.Repair(t.Context(), apply.DriftEvent{Ref: apply.Ref{Name: "a"}, At: time.Unix(1, 0)}))
	assert.Equal(t, map[string]Status{"one": {State: Waiting, DriftedObjects: 1}, "other": {State: Waiting}}, h.Statuses())
	h.Care(t.Context())
	assert.Equal(t, 1, h.Statuses()["one"].DriftedObjects, "it is still not known")
	one.unrendered = false
	h.Care(t.Context())
	assert.Equal(t, []string{"a"}, one.repairs())
	assert.Zero(t, h.Statuses()["one"].DriftedObjects)

	ctx, cancel := context.WithCancel(t.Context())
	one.repairSucceeds, one.onRepair = false, func(context.Context) { cancel() }
	at := h.sortedMembers()[0]
	at.driftQueue.add(true, apply.DriftEvent{Ref: apply.Ref{Name: "b"}, At: time.Unix(2, 0)})
	h.repairDrifted(ctx, at, false)
	assert.True(t, at.driftQueue.hasWork(false), "the interruption is no reason to wait for care")
}

// TestDriftWhileBusy checks that drift waits for the end of the run, and that the next care retries
// a failed repair.
func TestDriftWhileBusy(t *testing.T) {
	h := newTestFleet(t, 1, "one")
	h.Set(t.Context(), []Member[*fakeOwner]{h.member("one", "1")})
	h.expect(h.runStarts, "one 1")
	one, _ := h.Owner("one")
	one.repairSucceeds = false
	event := apply.DriftEvent{Ref: apply.Ref{Kind: "ConfigMap", Name: "a"}, At: time.Unix(1, 0)}
	assert.True(t, h.Repair(t.Context(), event))
	assert.Equal(t, 1, h.Statuses()["one"].DriftedObjects)
	h.Care(t.Context())
	assert.Zero(t, one.careCalls)
	assert.Empty(t, one.repairs())
	h.results["one"] <- nil
	h.expect(h.runEnds, "one 1 <nil> 1h0m0s")
	h.waitForTimer()
	assert.Equal(t, []string{"a"}, one.repairs())
	h.Care(t.Context())
	assert.Equal(t, 1, one.careCalls)
	assert.Equal(t, []string{"a", "a"}, one.repairs())
	assert.False(t, h.Repair(t.Context(), event), "whoever found it tries it again")
}

// TestDriftQueueKeepsNewestEvents checks that the newest event of each object stays, and that a
// failed repair is not fresh.
func TestDriftQueueKeepsNewestEvents(t *testing.T) {
	at, ref := &driftQueue{}, apply.Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: "a", Name: "b"}
	event := func(set string, second int64) apply.DriftEvent {
		return apply.DriftEvent{Set: set, Ref: ref, At: time.Unix(second, 0)}
	}
	assert.False(t, at.hasWork(true))
	at.add(false, event("old", 1))
	assert.False(t, at.hasWork(false))
	assert.True(t, at.hasWork(true))
	at.add(true, event("new", 3), event("older", 2))
	assert.True(t, at.hasWork(false))
	beyond := event("beyond", 1)
	beyond.Cluster = "beyond"
	at.add(true, beyond)
	assert.ElementsMatch(t, []apply.DriftEvent{event("new", 3), beyond}, at.drain(), "an object of another cluster is another one")
	assert.False(t, at.hasWork(true))
}
