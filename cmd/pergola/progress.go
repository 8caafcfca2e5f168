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
	live    bool
	colored bool
	// verbose also prints every object that was written.
	verbose bool

	mu      sync.Mutex
	running map[string]string
	// said is the last printed text of a step, saidAt the time of printing, newsAt when it was new.
	said           map[string]string
	saidAt, newsAt map[string]time.Time
	// applied and healthy are the steps in that state, counts the healthy steps of each owner.
	applied map[string]bool
	healthy map[string]bool
	counts  map[string]int
	order   []string
	shown   int
}

func newProgress(w io.Writer, live, colored, verbose bool) *progress {
	p := &progress{w: w, live: live, colored: colored, verbose: verbose}
	p.begin()
	return p
}

// begin resets the steps of the previous run.
func (p *progress) begin() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clear()
	p.running, p.order, p.said = map[string]string{}, nil, map[string]string{}
	p.saidAt, p.newsAt = map[string]time.Time{}, map[string]time.Time{}
	p.applied, p.healthy, p.counts = map[string]bool{}, map[string]bool{}, map[string]int{}
}

func (p *progress) event(e owner.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	key := e.Owner + " › " + e.Node
	switch e.State {
	case flow.Running:
		p.goesOn(key, "applying", e.Message, e.At)
	case flow.Applied:
		message := e.Message
		if !p.applied[key] {
			p.applied[key] = true
			p.isApplied(key, message)
			message = ""
		}
		p.goesOn(key, "applied, not healthy yet", message, e.At)
	case flow.Healthy:
		message := e.Message
		if p.isHealthy(key, e) {
			message = "" // it belongs to the previous state
		}
		p.goesOn(key, "healthy, still rolling out", message, e.At)
	case flow.RolledOut:
		p.isHealthy(key, e)
		if p.said[key] != "" {
			p.line("✓ "+key+": rolled out", color.FgGreen)
		}
		p.done(key)
	case flow.Failed:
		p.done(key)
		p.line(fmt.Sprintf("✗ %s: %s", key, oneLine(e.Error, 1000)), color.FgRed)
	case flow.Blocked:
		p.done(key)
		// After an interruption no step starts, which is not worth a line.
		if why := cause(e.Message); why != context.Canceled.Error() {
			p.line(fmt.Sprintf("○ %s: not started: %s", key, why), color.FgYellow)
		}
	}
	p.redraw()
}

// isApplied prints what a step wrote, if anything.
func (p *progress) isApplied(key, wrote string) {
	if wrote != "" && !p.live {
		p.line("→ "+key+": applied, "+wrote, color.FgCyan)
	}
}

// goesOn records the state of a running step. Without a live area it prints only news, and after
// remindAfter the pending condition with its age, so that no line repeats.
func (p *progress) goesOn(key, state, message string, at time.Time) {
	if _, ok := p.running[key]; !ok {
		p.order = append(p.order, key)
	}
	text := state
	if message != "" {
		text += ": " + message
	}
	p.running[key] = text
	if message == "" || text == p.said[key] && at.Sub(p.saidAt[key]) < remindAfter {
		return
	}
	if text != p.said[key] {
		p.newsAt[key] = at
	} else {
		text = fmt.Sprintf("%s (for %s): %s", state, at.Sub(p.newsAt[key]).Round(time.Second), message)
	}
	p.said[key], p.saidAt[key] = p.running[key], at
	if !p.live {
		p.line(fmt.Sprintf("… %s: %s", key, oneLine(text, 1000)), color.FgYellow)
	}
}

// remindAfter is when a step's reason for waiting is printed again. It is slightly less than the
// time between two reminders (owner.Reconciler: 25 s), so that each is printed.
const remindAfter = 20 * time.Second

// isHealthy prints once that a step is healthy and reports whether that is new.
func (p *progress) isHealthy(key string, e owner.Event) bool {
	if p.healthy[key] {
		return false
	}
	p.healthy[key] = true
	p.counts[e.Owner]++
	delete(p.said, key)
	p.line(fmt.Sprintf("✓ %s: healthy (%d of %d)", key, p.counts[e.Owner], e.Progress.Total), color.FgGreen)
	return true
}

func (p *progress) object(owner, bundle string, r apply.ObjectResult) {
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
	case apply.Recreated, apply.HeldBack, apply.LeftAlone, apply.Deleted, apply.Deleting, apply.Adopted:
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
	p.line(text, color.Faint)
	p.redraw()
}

// waiting prints that the run pauses, and why.
func (p *progress) waiting(w landscape.LeaseWait) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.line("… "+w.String(), color.FgYellow)
	p.redraw()
}

func (p *progress) drift(d landscape.Drift) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if d.HandedOver {
		p.line(fmt.Sprintf("= %s on %s %s: handed over, and left as it is", d.Object, d.Cluster, d.Description), color.Faint)
	} else if d.Repaired {
		p.line(fmt.Sprintf("↻ %s on %s %s: repaired", d.Object, d.Cluster, d.Description), color.FgCyan)
	} else {
		p.line(fmt.Sprintf("✗ %s on %s %s: not repaired: %s", d.Object, d.Cluster, d.Description, oneLine(d.Error, 500)), color.FgRed)
	}
}

func (p *progress) done(key string) {
	delete(p.running, key)
	for i, k := range p.order {
		if k == key {
			p.order = append(p.order[:i], p.order[i+1:]...)
			return
		}
	}
}

// line prints a final line above the live area.
func (p *progress) line(text string, attr color.Attribute) {
	p.clear()
	c := color.New(attr)
	if p.colored {
		c.EnableColor()
	} else {
		c.DisableColor()
	}
	fmt.Fprintln(p.w, c.Sprint(text))
}

// maxLive limits the running steps in the live area.
const maxLive = 8

func (p *progress) redraw() {
	if !p.live {
		return
	}
	p.clear()
	for i, key := range p.order {
		if i == maxLive {
			fmt.Fprintf(p.w, "  … and %d more\n", len(p.order)-maxLive)
			p.shown++
			break
		}
		fmt.Fprintf(p.w, "  • %s: %s\n", key, oneLine(p.running[key], 100))
		p.shown++
	}
}

func (p *progress) clear() {
	if p.live && p.shown > 0 {
		fmt.Fprintf(p.w, "\x1b[%dA\x1b[J", p.shown)
	}
	p.shown = 0
}

func (p *progress) finish() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clear()
}

// cause names the failed step that blocks another one; its own line has the reason.
func cause(message string) string {
	first, _, _ := strings.Cut(strings.TrimPrefix(message, "not started: "), ": ")
	return oneLine(first, 200)
}
