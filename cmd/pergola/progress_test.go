// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/apply/flow"
	"github.com/pergola-dev/pergola/controllers/owner"
)

// sampleEvents returns the events of two steps; the second one starts when the first one is
// healthy.
func sampleEvents() []owner.Event {
	var out []owner.Event
	add := func(node string, state flow.State, message string) {
		out = append(out, owner.Event{Owner: "seed a", Node: node, State: state, Message: message, Progress: flow.Progress{Total: 2}})
	}
	add("api", flow.Running, "")
	add("api", flow.Applied, "3 objects created")
	add("api", flow.Applied, "no pods")
	add("api", flow.Applied, "no pods")
	add("api", flow.Applied, "1 of 2 pods")
	add("api", flow.Healthy, "1 of 2 pods") // an event repeats the previous state's message
	add("next", flow.Running, "")
	add("api", flow.Healthy, "an old pod is there")
	add("next", flow.Applied, "")
	add("next", flow.Healthy, "")
	add("next", flow.RolledOut, "")
	add("api", flow.RolledOut, "an old pod is there")
	return out
}

func TestProgressLines(t *testing.T) {
	var b bytes.Buffer
	p := newProgress(&b, false, false, false)
	want := `→ seed a › api: applied, 3 objects created
… seed a › api: applied, not healthy yet: no pods
… seed a › api: applied, not healthy yet: 1 of 2 pods
✓ seed a › api: healthy (1 of 2)
… seed a › api: healthy, still rolling out: an old pod is there
✓ seed a › next: healthy (2 of 2)
✓ seed a › api: rolled out
`
	for _, e := range sampleEvents() {
		p.showEvent(e)
	}
	assert.Equal(t, want, b.String())

	b.Reset()
	p.reset()
	for _, e := range sampleEvents() {
		p.showEvent(e)
	}
	assert.Equal(t, want, b.String(), "the next run of the same process counts anew")

	b.Reset()
	p.showEvent(owner.Event{Owner: "seed a", Node: "api", State: flow.Running})
	p.showEvent(owner.Event{Owner: "seed a", Node: "api", State: flow.Failed, Error: "no\nluck"})
	p.showEvent(owner.Event{Owner: "seed a", Node: "next", State: flow.Blocked, Message: "because api failed: no luck"})
	p.showEvent(owner.Event{Owner: "seed a", Node: "last", State: flow.Blocked, Message: "not started: context canceled"})
	assert.Equal(t, "✗ seed a › api: no luck\n○ seed a › next: not started: because api failed\n", b.String())
}

// TestProgressRepeatsWaiting: there is a line at least every half minute.
func TestProgressRepeatsWaiting(t *testing.T) {
	var b bytes.Buffer
	p := newProgress(&b, false, false, false)
	start := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	p.showEvent(owner.Event{Owner: "seed a", Node: "api", State: flow.Applied, At: start})
	for _, e := range []struct {
		after   time.Duration
		message string
	}{{0, "no pods"}, {3 * time.Second, "no pods"}, {25 * time.Second, "no pods"}, {50 * time.Second, "no pods"}, {78 * time.Second, "1 of 2 pods"}, {103 * time.Second, "1 of 2 pods"}} {
		p.showEvent(owner.Event{Owner: "seed a", Node: "api", State: flow.Applied, Message: e.message, At: start.Add(e.after)})
	}
	assert.Equal(t, `… seed a › api: applied, not healthy yet: no pods
… seed a › api: applied, not healthy yet (for 25s): no pods
… seed a › api: applied, not healthy yet (for 50s): no pods
… seed a › api: applied, not healthy yet: 1 of 2 pods
… seed a › api: applied, not healthy yet (for 25s): 1 of 2 pods
`, b.String())
}

// TestProgressOnATerminal: the state of a running step is rewritten, and final states stay.
func TestProgressOnATerminal(t *testing.T) {
	var b bytes.Buffer
	p := newProgress(&b, true, false, false)
	var shown []string
	for _, e := range sampleEvents() {
		p.showEvent(e)
		shown = append(shown, terminalText(b.String()))
	}
	assert.Equal(t, "  • seed a › api: applied, not healthy yet\n", shown[1])
	assert.Equal(t, "  • seed a › api: applied, not healthy yet: 1 of 2 pods\n", shown[4])
	assert.Equal(t, "✓ seed a › api: healthy (1 of 2)\n  • seed a › api: healthy, still rolling out\n  • seed a › next: applying\n", shown[6])
	p.finish()
	assert.Equal(t, "✓ seed a › api: healthy (1 of 2)\n✓ seed a › next: healthy (2 of 2)\n✓ seed a › api: rolled out\n", terminalText(b.String()))
}

// terminalText returns what a terminal shows after the control sequences clear lines.
func terminalText(text string) string {
	var lines []string
	for _, part := range strings.SplitAfter(text, "\n") {
		for strings.HasPrefix(part, "\x1b[") {
			up, rest, _ := strings.Cut(strings.TrimPrefix(part, "\x1b["), "A\x1b[J")
			n := 0
			for _, digit := range up {
				n = n*10 + int(digit-'0')
			}
			lines, part = lines[:len(lines)-n], rest
		}
		if part != "" {
			lines = append(lines, part)
		}
	}
	return strings.Join(lines, "")
}

func TestProgressOfObjects(t *testing.T) {
	ref := apply.Ref{APIVersion: "v1", Kind: "Secret", Namespace: "a", Name: "b"}
	for action, want := range map[apply.Action][2]string{
		apply.Unchanged:      {"", ""},
		apply.Retained:       {"", ""},
		apply.Created:        {"", "  created Secret a/b (seed a, x)\n"},
		apply.AlreadyDeleted: {"", "  gone Secret a/b (seed a, x)\n"},
		apply.Deleted:        {"  deleted Secret a/b (seed a, x)\n", "  deleted Secret a/b (seed a, x)\n"},
		apply.NotOwned:       {"  left-alone Secret a/b (seed a, x)\n", "  left-alone Secret a/b (seed a, x)\n"},
		apply.HeldBack:       {"  held Secret a/b (seed a, x)\n", "  held Secret a/b (seed a, x)\n"},
	} {
		for i, verbose := range []bool{false, true} {
			var b bytes.Buffer
			newProgress(&b, false, false, verbose).printObject("seed a", "x", apply.ObjectResult{Ref: ref, Action: action})
			assert.Equal(t, want[i], b.String(), "%s, verbose %v", action, verbose)
		}
	}
	var b bytes.Buffer
	definition := apply.Ref{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition", Name: "b.a"}
	newProgress(&b, false, false, false).printObject("seed a", "x", apply.ObjectResult{Ref: definition, Action: apply.Retained, Message: "they stay"})
	assert.Equal(t, "  kept CustomResourceDefinition b.a (seed a, x): they stay\n", b.String())
}
