// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/fatih/color"

	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/apply/flow"
	"github.com/pergola-dev/pergola/controllers/landscape"
	"github.com/pergola-dev/pergola/controllers/owner"
)

// progress prints one line per change of state: a step is applied, then healthy, and later rolled
// out. On a terminal the lines of running steps are rewritten and only final states stay; elsewhere
// only whole lines appear.
type progress struct {
	w       io.Writer
	isLive  bool
	colored bool
	// verbose also prints every object that was written.
	verbose bool

	mu           sync.Mutex
	runningSteps map[string]string
	// lastTexts is the last printed text of a step; printedAt is the time of printing; changedAt is
	// when the text was new.
	lastTexts            map[string]string
	printedAt, changedAt map[string]time.Time
	// appliedSteps and healthy are the steps in that state, counts the healthy steps of each owner.
	appliedSteps  map[string]bool
	healthySteps  map[string]bool
	healthyCounts map[string]int
	stepOrder     []string
	shownLines    int
}

func newProgress(w io.Writer, live, colored, verbose bool) *progress {
	p := &progress{w: w, isLive: live, colored: colored, verbose: verbose}
	p.reset()
	return p
}

// reset resets the steps of the previous run.
func (p *progress) reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clear()
	p.runningSteps, p.stepOrder, p.lastTexts = map[string]string{}, nil, map[string]string{}
	p.printedAt, p.changedAt = map[string]time.Time{}, map[string]time.Time{}
	p.appliedSteps, p.healthySteps, p.healthyCounts = map[string]bool{}, map[string]bool{}, map[string]int{}
}

func (p *progress) showEvent(e owner.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	key := e.Owner + " › " + e.Node
	switch e.State {
	case flow.Running:
		p.updateStep(key, "applying", e.Message, e.At)
	case flow.Applied:
		message := e.Message
		if !p.appliedSteps[key] {
			p.appliedSteps[key] = true
			p.printApplied(key, message)
			message = ""
		}
		p.updateStep(key, "applied, not healthy yet", message, e.At)
	case flow.Healthy:
		message := e.Message
		if p.markHealthy(key, e) {
			message = "" // it belongs to the previous state
		}
		p.updateStep(key, "healthy, still rolling out", message, e.At)
	case flow.RolledOut:
		p.markHealthy(key, e)
		if p.lastTexts[key] != "" {
			p.printLine("✓ "+key+": rolled out", color.FgGreen)
		}
		p.finishStep(key)
	case flow.Failed:
		p.finishStep(key)
		p.printLine(fmt.Sprintf("✗ %s: %s", key, oneLine(e.Error, 1000)), color.FgRed)
	case flow.Blocked:
		p.finishStep(key)
		// After an interruption no step starts, which is not worth a line.
		if why := blockingStep(e.Message); why != context.Canceled.Error() {
			p.printLine(fmt.Sprintf("○ %s: not started: %s", key, why), color.FgYellow)
		}
	}
	p.redraw()
}

// printApplied prints what a step wrote, if anything.
func (p *progress) printApplied(key, wrote string) {
	if wrote != "" && !p.isLive {
		p.printLine("→ "+key+": applied, "+wrote, color.FgCyan)
	}
}

// updateStep records the state of a running step. Without a live area it prints only news, and
// after waitRepeatInterval the pending condition with its age, so that no line repeats.
func (p *progress) updateStep(key, state, message string, at time.Time) {
	if _, ok := p.runningSteps[key]; !ok {
		p.stepOrder = append(p.stepOrder, key)
	}
	text := state
	if message != "" {
		text += ": " + message
	}
	p.runningSteps[key] = text
	if message == "" || text == p.lastTexts[key] && at.Sub(p.printedAt[key]) < waitRepeatInterval {
		return
	}
	if text != p.lastTexts[key] {
		p.changedAt[key] = at
	} else {
		text = fmt.Sprintf("%s (for %s): %s", state, at.Sub(p.changedAt[key]).Round(time.Second), message)
	}
	p.lastTexts[key], p.printedAt[key] = p.runningSteps[key], at
	if !p.isLive {
		p.printLine(fmt.Sprintf("… %s: %s", key, oneLine(text, 1000)), color.FgYellow)
	}
}

// waitRepeatInterval is when a step's reason for waiting is printed again. It is slightly less than
// the time between two reminders (owner.Reconciler: 25 s), so that each is printed.
const waitRepeatInterval = 20 * time.Second

// markHealthy prints once that a step is healthy and reports whether that is new.
func (p *progress) markHealthy(key string, e owner.Event) bool {
	if p.healthySteps[key] {
		return false
	}
	p.healthySteps[key] = true
	p.healthyCounts[e.Owner]++
	delete(p.lastTexts, key)
	p.printLine(fmt.Sprintf("✓ %s: healthy (%d of %d)", key, p.healthyCounts[e.Owner], e.Progress.Total), color.FgGreen)
	return true
}

func (p *progress) printObject(owner, bundle string, r apply.ObjectResult) {
	switch r.Action {
	case apply.Unchanged:
		if len(r.Dropped) == 0 {
			return
		}
	case apply.Retained:
		// Most of these are not of interest, such as objects of the garbage collector. A definition
		// stays with all objects of its kind.
		if r.Ref.Kind != "CustomResourceDefinition" {
			return
		}
	case apply.Recreated, apply.HeldBack, apply.NotOwned, apply.Deleted, apply.Deleting, apply.Adopted:
	default:
		// For a changed object, a message means that it was taken over.
		if !p.verbose && (r.Action != apply.Configured || r.Message == "") {
			return
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	text := fmt.Sprintf("  %s %s (%s, %s)", r.Action, r.Ref, owner, bundle)
	if r.Message != "" {
		text += ": " + oneLine(r.Message, 300)
	}
	p.printLine(text, color.Faint)
	p.redraw()
}

// printWaiting prints that the run pauses, and why.
func (p *progress) printWaiting(w landscape.LeaseWait) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.printLine("… "+w.String(), color.FgYellow)
	p.redraw()
}

func (p *progress) printDrift(d landscape.Drift) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if d.HandedOver {
		p.printLine(fmt.Sprintf("= %s on %s %s: handed over, and unchanged", d.Object, d.Cluster, d.Description), color.Faint)
	} else if d.Repaired {
		p.printLine(fmt.Sprintf("↻ %s on %s %s: repaired", d.Object, d.Cluster, d.Description), color.FgCyan)
	} else {
		p.printLine(fmt.Sprintf("✗ %s on %s %s: not repaired: %s", d.Object, d.Cluster, d.Description, oneLine(d.Error, 500)), color.FgRed)
	}
}

func (p *progress) finishStep(key string) {
	delete(p.runningSteps, key)
	for i, k := range p.stepOrder {
		if k == key {
			p.stepOrder = append(p.stepOrder[:i], p.stepOrder[i+1:]...)
			return
		}
	}
}

// printLine prints a final line above the live area.
func (p *progress) printLine(text string, attr color.Attribute) {
	p.clear()
	c := color.New(attr)
	if p.colored {
		c.EnableColor()
	} else {
		c.DisableColor()
	}
	fmt.Fprintln(p.w, c.Sprint(text))
}

// maxRunningSteps limits the running steps in the live area.
const maxRunningSteps = 8

func (p *progress) redraw() {
	if !p.isLive {
		return
	}
	p.clear()
	for i, key := range p.stepOrder {
		if i == maxRunningSteps {
			fmt.Fprintf(p.w, "  … and %d more\n", len(p.stepOrder)-maxRunningSteps)
			p.shownLines++
			break
		}
		fmt.Fprintf(p.w, "  • %s: %s\n", key, oneLine(p.runningSteps[key], 100))
		p.shownLines++
	}
}

func (p *progress) clear() {
	if p.isLive && p.shownLines > 0 {
		fmt.Fprintf(p.w, "\x1b[%dA\x1b[J", p.shownLines)
	}
	p.shownLines = 0
}

func (p *progress) finish() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clear()
}

// blockingStep names the failed step that blocks another one; its own line has the reason.
func blockingStep(message string) string {
	first, _, _ := strings.Cut(strings.TrimPrefix(message, "not started: "), ": ")
	return oneLine(first, 200)
}
