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
	h := newHarbour(t, 1)
	var all sync.WaitGroup
	all.Add(2)
	together := func(context.Context) { all.Done(); all.Wait() }
	h.Set(t.Context(), []Member[*ship]{{ID: "one", New: func() *ship { return &ship{left: true, onCare: together} }}, {ID: "two", New: func() *ship { return &ship{left: true, onCare: together} }}})
	done := make(chan string, 1)
	go func() { h.Care(t.Context()); done <- "done" }()
	h.hears(done, "done")
}

// TestDriftIsKept checks that drift stays queued while the objects of its owner are unknown, and
// that an interrupted repair is retried after the next run.
func TestDriftIsKept(t *testing.T) {
	h := newHarbour(t, 1, "busy")
	one, other := &ship{left: true, mends: true, unrendered: true}, &ship{left: true, mends: true, foreign: true}
	h.Set(t.Context(), []Member[*ship]{{ID: "one", New: func() *ship { return one }}, {ID: "other", New: func() *ship { return other }}})
	assert.True(t, h.Repair(t.Context(), apply.DriftEvent{Ref: apply.Ref{Name: "a"}, At: time.Unix(1, 0)}))
	assert.Equal(t, map[string]Status{"one": {State: Waiting, Drifted: 1}, "other": {State: Waiting}}, h.Statuses())
	h.Care(t.Context())
	assert.Equal(t, 1, h.Statuses()["one"].Drifted, "it is still not known")
	one.unrendered = false
	h.Care(t.Context())
	assert.Equal(t, []string{"a"}, one.repairs())
	assert.Zero(t, h.Statuses()["one"].Drifted)

	ctx, cancel := context.WithCancel(t.Context())
	one.mends, one.onRepair = false, func(context.Context) { cancel() }
	at := h.all()[0]
	at.drifted.add(true, apply.DriftEvent{Ref: apply.Ref{Name: "b"}, At: time.Unix(2, 0)})
	h.repairDrifted(ctx, at, false)
	assert.True(t, at.drifted.has(false), "the interruption is no reason to wait for care")
}

// TestDriftWhileBusy checks that drift waits for the end of the run, and that the next care retries
// a failed repair.
func TestDriftWhileBusy(t *testing.T) {
	h := newHarbour(t, 1, "one")
	h.Set(t.Context(), []Member[*ship]{h.member("one", "1")})
	h.hears(h.begun, "one 1")
	one, _ := h.Owner("one")
	one.mends = false
	event := apply.DriftEvent{Ref: apply.Ref{Kind: "ConfigMap", Name: "a"}, At: time.Unix(1, 0)}
	assert.True(t, h.Repair(t.Context(), event))
	assert.Equal(t, 1, h.Statuses()["one"].Drifted)
	h.Care(t.Context())
	assert.Zero(t, one.cared)
	assert.Empty(t, one.repairs())
	h.results["one"] <- nil
	h.hears(h.ended, "one 1 <nil> 1h0m0s")
	h.timer()
	assert.Equal(t, []string{"a"}, one.repairs())
	h.Care(t.Context())
	assert.Equal(t, 1, one.cared)
	assert.Equal(t, []string{"a", "a"}, one.repairs())
	assert.False(t, h.Repair(t.Context(), event), "whoever found it tries it again")
}

// TestKeptDrift checks that the newest event of each object stays, and that a failed repair is not
// fresh.
func TestKeptDrift(t *testing.T) {
	at, ref := &drifted{}, apply.Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: "a", Name: "b"}
	event := func(set string, second int64) apply.DriftEvent {
		return apply.DriftEvent{Set: set, Ref: ref, At: time.Unix(second, 0)}
	}
	assert.False(t, at.has(true))
	at.add(false, event("old", 1))
	assert.False(t, at.has(false))
	assert.True(t, at.has(true))
	at.add(true, event("new", 3), event("older", 2))
	assert.True(t, at.has(false))
	beyond := event("beyond", 1)
	beyond.Cluster = "beyond"
	at.add(true, beyond)
	assert.ElementsMatch(t, []apply.DriftEvent{event("new", 3), beyond}, at.take(), "an object of another cluster is another one")
	assert.False(t, at.has(true))
}
