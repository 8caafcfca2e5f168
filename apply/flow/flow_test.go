// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	clocktesting "k8s.io/utils/clock/testing"
)

func nothing(context.Context, func(State, string)) error { return nil }

func fails(text string) func(context.Context, func(State, string)) error {
	return func(context.Context, func(State, string)) error { return errors.New(text) }
}

func step(id string, run func(context.Context, func(State, string)) error, needs ...Edge) Node {
	return Node{ID: id, Run: run, Needs: needs}
}

func edgeTo(id string) Edge { return Edge{ID: id} }

func states(r *Result) map[string]State {
	out := map[string]State{}
	for _, n := range r.Nodes {
		out[n.ID] = n.State
	}
	return out
}

func TestValidate(t *testing.T) {
	for name, c := range map[string]struct {
		nodes []Node
		says  []string
	}{
		"good":      {[]Node{step("a", nothing), step("b", nothing, edgeTo("a"))}, nil},
		"unknown":   {[]Node{step("a", nothing, edgeTo("ghost"))}, []string{"step a needs ghost, which does not exist"}},
		"duplicate": {[]Node{step("a", nothing), step("a", nothing)}, []string{"step a exists twice"}},
		"self":      {[]Node{step("a", nothing, edgeTo("a"))}, []string{"a → a"}},
		"cycle": {[]Node{step("x", nothing, edgeTo("a")), step("a", nothing, edgeTo("b")), step("b", nothing, edgeTo("c")), step("c", nothing, edgeTo("a"))},
			[]string{"a → b → c → a"}},
		"all at once": {[]Node{step("", nothing), step("a", nil, Edge{ID: "a", Until: "Soon"})},
			[]string{"no id", "no Run", "until Soon", "a → a"}},
	} {
		t.Run(name, func(t *testing.T) {
			err := Graph{c.nodes}.Validate()
			if c.says == nil {
				require.NoError(t, err)
				return
			}
			for _, text := range c.says {
				require.ErrorContains(t, err, text)
			}
			_, err = Run(t.Context(), Graph{c.nodes}, Options{})
			require.Error(t, err)
		})
	}
}

func TestOrderAndDotAreStable(t *testing.T) {
	g := Graph{[]Node{step("c", nothing, edgeTo("b"), Edge{ID: "a", Until: Applied}), step("b", nothing, edgeTo("a")), step("z", nothing), step("a", nothing)}}
	for range 20 {
		order, err := g.Order()
		require.NoError(t, err)
		require.Equal(t, []string{"z", "a", "b", "c"}, order)
	}
	var b strings.Builder
	require.NoError(t, g.Dot(&b))
	assert.Contains(t, b.String(), `"a" -> "c" [style=dotted, tooltip="until applied"];`)
	assert.Contains(t, b.String(), `"b" -> "c" [style=solid, tooltip="until healthy"];`)
}

func TestFailureStopsOnlyDependents(t *testing.T) {
	g := Graph{[]Node{
		step("bad", fails("no disk")),
		step("next", nothing, edgeTo("bad")),
		step("last", nothing, edgeTo("next"), edgeTo("other")),
		step("other", nothing),
		step("panics", func(context.Context, func(State, string)) error { panic("boom") }),
	}}
	var events []Event
	r, err := Run(t.Context(), g, Options{OnEvent: func(e Event) { events = append(events, e) }})
	require.ErrorContains(t, err, "bad: no disk")
	require.ErrorContains(t, err, "panics: a fault of Pergola (boom)")
	assert.NotContains(t, err.Error(), "next")
	assert.Equal(t, map[string]State{"bad": Failed, "next": Blocked, "last": Blocked, "other": RolledOut, "panics": Failed}, states(r))
	assert.Equal(t, "because bad failed: no disk", r.Node("last").Message)
	assert.Equal(t, Progress{Done: 1, Total: 5, Percent: 20}, r.Progress)
	assert.NotEmpty(t, events)
	var failed *NodeError
	require.ErrorAs(t, err, &failed)
	assert.Equal(t, "bad", failed.ID)
}

func TestDependentsStartAtTheStateTheyNeed(t *testing.T) {
	goOn, started := make(chan struct{}), make(chan string, 3)
	begin := func(id string) func(context.Context, func(State, string)) error {
		return func(context.Context, func(State, string)) error { started <- id; return nil }
	}
	g := Graph{[]Node{
		step("base", func(ctx context.Context, report func(State, string)) error {
			report(Applied, "")
			<-goOn
			report(Healthy, "")
			report(Applied, "still applied") // a state never goes back
			<-goOn
			return nil
		}),
		step("early", begin("early"), Edge{ID: "base", Until: Applied}),
		step("middle", begin("middle"), edgeTo("base")),
		step("late", begin("late"), Edge{ID: "base", Until: RolledOut}),
	}}
	done := make(chan error)
	go func() { _, err := Run(t.Context(), g, Options{}); done <- err }()
	assert.Equal(t, "early", <-started)
	assert.Empty(t, started)
	goOn <- struct{}{}
	assert.Equal(t, "middle", <-started)
	assert.Empty(t, started)
	goOn <- struct{}{}
	assert.Equal(t, "late", <-started)
	require.NoError(t, <-done)
}

func TestFailureKeepsReachedState(t *testing.T) {
	second := make(chan struct{})
	g := Graph{[]Node{
		step("a", func(_ context.Context, report func(State, string)) error {
			report(Applied, "")
			defer close(second)
			return errors.New("never healthy")
		}),
		step("b", func(context.Context, func(State, string)) error { <-second; return nil }),
		step("uses", nothing, Edge{ID: "a", Until: Applied}, edgeTo("b")),
		step("waits", nothing, edgeTo("a")),
	}}
	r, err := Run(t.Context(), g, Options{})
	require.Error(t, err)
	assert.Equal(t, map[string]State{"a": Failed, "b": RolledOut, "uses": RolledOut, "waits": Blocked}, states(r))
}

func TestSkippedNodesSatisfyDependents(t *testing.T) {
	off := step("off", fails("must not run"))
	off.SkipIf = func(context.Context) (bool, string) { return true, "disabled" }
	r, err := Run(t.Context(), Graph{[]Node{off, step("after", nothing, Edge{ID: "off", Until: RolledOut})}}, Options{})
	require.NoError(t, err)
	assert.Equal(t, map[string]State{"off": Skipped, "after": RolledOut}, states(r))
	assert.Equal(t, "disabled", r.Node("off").Message)
	assert.Equal(t, Progress{Done: 1, Total: 1, Percent: 100}, r.Progress)
}

func TestLimitCountsWorkNotWaiting(t *testing.T) {
	var mu sync.Mutex
	working, most := 0, 0
	healthy := make(chan struct{})
	var nodes []Node
	for i := range 10 {
		nodes = append(nodes, step(fmt.Sprint(i), func(ctx context.Context, report func(State, string)) error {
			mu.Lock()
			working++
			most = max(most, working)
			mu.Unlock()
			mu.Lock()
			working--
			mu.Unlock()
			report(Applied, "")
			<-healthy // all ten nodes must get here although two work at a time
			return nil
		}))
	}
	applied := 0
	_, err := Run(t.Context(), Graph{nodes}, Options{Limit: 2, OnEvent: func(e Event) {
		if e.State == Applied {
			if applied++; applied == 10 {
				close(healthy)
			}
		}
	}})
	require.NoError(t, err)
	assert.LessOrEqual(t, most, 2)
}

func TestTimeoutSaysWhatItWaitedFor(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Now())
	n := step("slow", func(ctx context.Context, report func(State, string)) error {
		report(Applied, "2 of 3 pods ready")
		clock.Step(5 * time.Minute)
		<-ctx.Done()
		return ctx.Err()
	})
	n.Timeout = 5 * time.Minute
	r, err := Run(t.Context(), Graph{[]Node{n}}, Options{Clock: clock})
	require.ErrorContains(t, err, "not done after 5m0s (2 of 3 pods ready)")
	assert.Equal(t, Failed, r.Node("slow").State)
}

func TestMessageOnlyEvents(t *testing.T) {
	var told []string
	n := step("slow", func(_ context.Context, report func(State, string)) error {
		report(Running, "half way")
		report(Applied, "2 created")
		report(Running, "2 of 3 pods ready")
		report(Healthy, "")
		return nil
	})
	_, err := Run(t.Context(), Graph{[]Node{n}}, Options{OnEvent: func(e Event) { told = append(told, fmt.Sprintf("%s %t %s", e.State, e.MessageOnly, e.Message)) }})
	require.NoError(t, err)
	assert.Equal(t, []string{
		"Running false ", "Running true half way", "Applied false 2 created", "Applied true 2 of 3 pods ready", "Healthy false 2 of 3 pods ready", "RolledOut false 2 of 3 pods ready",
	}, told)
}

func TestCancelEndsSoon(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	forever := make(chan struct{})
	defer close(forever)
	g := Graph{[]Node{
		step("deaf", func(context.Context, func(State, string)) error { cancel(); <-forever; return nil }),
		step("listens", func(ctx context.Context, _ func(State, string)) error { <-ctx.Done(); return ctx.Err() }),
		step("later", nothing, edgeTo("deaf")),
	}}
	began := time.Now()
	r, err := Run(ctx, g, Options{GracePeriod: 100 * time.Millisecond})
	require.ErrorIs(t, err, context.Canceled)
	assert.Less(t, time.Since(began), 2*time.Second)
	assert.Equal(t, map[string]State{"deaf": Failed, "listens": Failed, "later": Blocked}, states(r))
}

func TestManyShortNodes(t *testing.T) {
	var nodes []Node
	for i := range 300 {
		n := step(fmt.Sprint(i), nothing)
		if i > 0 {
			n.Needs = []Edge{edgeTo(fmt.Sprint(i - 1))}
		}
		nodes = append(nodes, n)
	}
	r, err := Run(t.Context(), Graph{nodes}, Options{Limit: 1})
	require.NoError(t, err)
	assert.Equal(t, Progress{Done: 300, Total: 300, Percent: 100}, r.Progress)
}
