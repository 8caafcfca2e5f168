package owner

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pergola-dev/pergola/controllers/references"
	"github.com/pergola-dev/pergola/render"
)

// State is what the last run of an owner left behind. It is a value: a transition replaces lists
// and maps and changes none, so that a copy stays as it is.
type State struct {
	// bundles are those of the last rendering.
	bundles []render.Bundle
	// failures says why the last apply of a bundle failed.
	failures map[string]string
	// applied has, for each bundle, the rendering that was applied last.
	applied map[string]string
	// unjudged says why there are no bundles to judge: the last reconciliation did not get as far
	// as rendering, or the owner is being deleted.
	unjudged string
	// access is the access to the API server that the last reconciliation has made.
	access madeAccess
	// accessSeen is when we last checked that the Secret with it exists by its name.
	accessSeen time.Time
	// waiting are the bundles whose objects wait until somebody serves the API server of the Shoot,
	// or answers their webhooks.
	waiting map[string]bool
	// leaving are the objects that were still being deleted after the last apply, by bundle.
	leaving map[string][]leaving
	// rotation is how rotations of credentials stand.
	rotation credentials
	// referenced is what the declaration refers to, as it was read last.
	referenced []references.Found
	// extensions are the Extensions of the operator, as they were read last.
	extensions []*unstructured.Unstructured
	// seeds are those of a virtual garden, as they were known last.
	seeds []render.SeedFact
	// found is the part of the input that clusters and registries gave.
	found foundInput
}

// foundInput is the part of an input that no file has.
type foundInput struct {
	facts render.Facts
	// extensions are those of Git and those that are there besides; nil before they were read.
	extensions        map[string]render.Extension
	charts            map[string]render.Chart
	resourceChecksums map[string]string
}

// Bundles of the last rendering.
func (s State) Bundles() []render.Bundle { return slices.Clone(s.bundles) }

// rendered begins the apply of other bundles.
func (s *State) rendered(bundles []render.Bundle) {
	s.bundles, s.failures, s.unjudged = bundles, nil, ""
}

// renderedAgain puts a bundle in the place of the one that was rendered with former facts.
func (s *State) renderedAgain(b render.Bundle) {
	s.bundles = slices.Clone(s.bundles)
	for i := range s.bundles {
		if s.bundles[i].Name == b.Name {
			s.bundles[i] = b
		}
	}
}

// latest gives bundles as they were rendered last.
func (s State) latest(bundles []render.Bundle) []render.Bundle {
	out := slices.Clone(bundles)
	for i, b := range out {
		if at := slices.IndexFunc(s.bundles, func(o render.Bundle) bool { return o.Name == b.Name }); at >= 0 {
			out[i] = s.bundles[at]
		}
	}
	return out
}

// notJudged leaves nothing known about the components, and says why.
func (s *State) notJudged(cause error) {
	s.bundles, s.unjudged = nil, strings.Join(Problems(cause), "; ")
}

// sent keeps why a bundle could not be applied, until it could.
func (s *State) sent(bundle string, err error) {
	s.failures = with(s.failures, bundle, strings.Join(Problems(err), "; "), err != nil)
}

// appliedAs keeps how a bundle was rendered that was applied last, nothing where another rendering
// failed: one that fails when it is applied again was applied all the same.
func (s *State) appliedAs(b render.Bundle, err error) {
	now := renderingOf(b)
	s.applied = with(s.applied, b.Name, now, err == nil || s.applied[b.Name] == now)
}

// waits keeps whether objects of a bundle wait until somebody serves the API server that they
// belong to, or answers its webhooks.
func (s *State) waits(bundle string, waits bool) {
	s.waiting = with(s.waiting, bundle, true, waits)
}

// left keeps the objects of a bundle that are still being deleted after an apply. Nothing watches
// them, so FinishRemovals checks.
func (s *State) left(bundle string, found []leaving) {
	s.leaving = with(s.leaving, bundle, found, len(found) > 0)
}

// ended is for when the owner is taken down: nothing of it is repaired, judged or requested any
// more.
func (s *State) ended(why string) {
	*s = State{accessSeen: s.accessSeen, rotation: s.rotation, extensions: s.extensions, found: s.found, seeds: s.seeds, unjudged: why}
}

// with is a copy of a map that has a value or does not have it.
func with[V any](of map[string]V, key string, value V, has bool) map[string]V {
	out := maps.Clone(of)
	if !has {
		delete(out, key)
		return out
	}
	if out == nil {
		out = map[string]V{}
	}
	out[key] = value
	return out
}

// subject is an owner at work. The goroutines of a run share its State.
type subject struct {
	Owner
	// declared are the Extensions that Git declares: those of the Input include others.
	declared map[string]render.Extension

	mu   sync.Mutex
	last State
}

// from begins work on an owner where the last run ended.
func (o Owner) from(s State) *subject {
	at := &subject{Owner: o, declared: o.Input.Extensions, last: s}
	in := &at.Input
	in.Facts, in.Charts, in.ResourceChecksums = s.found.facts, s.found.charts, s.found.resourceChecksums
	if s.found.extensions != nil {
		in.Extensions = s.found.extensions
	}
	return at
}

// now is the State of an owner as it is known.
func (o *subject) now() State {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.last
}

// end is now for the end of a call. The steps that an interrupted flow leaves behind tell nobody
// any more: another call may be at work.
func (o *subject) end() State {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.OnState = nil
	return o.last
}

// note is the one place where the State of an owner changes, and its Input with it.
func (o *subject) note(change func(*State)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	change(&o.last)
	o.last.found = foundInput{facts: o.Input.Facts, charts: o.Input.Charts, resourceChecksums: o.Input.ResourceChecksums}
	if o.last.extensions != nil {
		o.last.found.extensions = o.Input.Extensions
	}
	if o.OnState != nil {
		o.OnState(o.last)
	}
}

func (o *subject) String() string { return o.identity().String() }

// ControlPlane is Owner.ControlPlane, safe while the Input changes.
func (o *subject) ControlPlane() string { return o.identity().ControlPlaneNamespace }

func (o *subject) identity() render.Owner { return o.input().Owner }

// Bundles of the last rendering.
func (o *subject) Bundles() []render.Bundle { return o.now().Bundles() }

// input is a copy for other goroutines than that of the run.
func (o *subject) input() render.Input {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.Input
}
