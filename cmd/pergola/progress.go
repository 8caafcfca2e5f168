package main

import (
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/fatih/color"

	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/apply/flow"
	"github.com/pergola-dev/pergola/controllers/landscape"
	"github.com/pergola-dev/pergola/controllers/owner"
)

// progress prints what happens, one line per change of state. On a terminal the
// line of the running steps is rewritten in place; elsewhere only whole lines appear.
type progress struct {
	w       io.Writer
	live    bool
	colored bool
	// verbose also prints every object that was written.
	verbose bool

	mu      sync.Mutex
	running map[string]string
	// said is what was printed last about a step.
	said  map[string]string
	order []string
	shown int
}

func newProgress(w io.Writer, live, colored, verbose bool) *progress {
	return &progress{w: w, live: live, colored: colored, verbose: verbose, running: map[string]string{}, said: map[string]string{}}
}

func (p *progress) event(e owner.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	key := e.Owner + " › " + e.Node
	switch e.State {
	case flow.Running, flow.Applied, flow.Healthy:
		if _, ok := p.running[key]; !ok {
			p.order = append(p.order, key)
		}
		text := strings.ToLower(string(e.State))
		if e.Message != "" {
			text += ": " + e.Message
		}
		p.running[key] = text
		if !p.live && e.Message != "" && e.Message != p.said[key] {
			p.said[key] = e.Message
			p.line(fmt.Sprintf("… %s: %s", key, oneLine(e.Message, 300)), color.FgYellow)
		}
	case flow.RolledOut:
		p.done(key)
		p.line(fmt.Sprintf("✓ %s (%d%%)", key, e.Progress.Percent), color.FgGreen)
	case flow.Failed:
		p.done(key)
		p.line(fmt.Sprintf("✗ %s: %s", key, oneLine(e.Error, 1000)), color.FgRed)
	case flow.Blocked:
		p.done(key)
		p.line(fmt.Sprintf("○ %s: not started: %s", key, cause(e.Message)), color.FgYellow)
	}
	p.redraw()
}

func (p *progress) object(owner, bundle string, r apply.ObjectResult) {
	if r.Action == "unchanged" || r.Action == "kept" || (!p.verbose && r.Action != "recreated" && r.Action != "held" && r.Action != "deleted") {
		return
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

func (p *progress) drift(d landscape.Drift) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if d.Repaired {
		p.line(fmt.Sprintf("↻ %s on %s %s: repaired", d.Object, d.Cluster, d.What), color.FgCyan)
	} else {
		p.line(fmt.Sprintf("✗ %s on %s %s: not repaired: %s", d.Object, d.Cluster, d.What, oneLine(d.Error, 500)), color.FgRed)
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

// line prints one finished line above the live area.
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

// maxLive is how many running steps are shown at a time.
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

func oneLine(s string, limit int) string {
	s = strings.Join(strings.Fields(s), " ")
	if r := []rune(s); len(r) > limit {
		return string(r[:limit]) + "…"
	}
	return s
}

// cause of a blocked step: which step failed; why is said where that one is reported.
func cause(message string) string {
	first, _, _ := strings.Cut(strings.TrimPrefix(message, "not started: "), ": ")
	return oneLine(first, 200)
}
