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

// State is the result of an owner's last run. It is a value: transitions replace lists and maps
// instead of changing them, so that copies stay valid.
type State struct {
	// bundles of the last rendering.
	bundles []render.Bundle
	// failures has the error of the last apply, by bundle.
	failures map[string]string
	// applied has the last applied rendering, by bundle.
	applied map[string]string
	// unjudged is the reason why there are no bundles to judge: the last reconciliation failed
	// before rendering, or the owner is being deleted.
	unjudged string
	// access is the access to the API server that the last reconciliation has generated.
	access madeAccess
	// accessSeen is the time of the last check that the Secret with the access exists.
	accessSeen time.Time
	// waiting are the bundles whose objects wait for the API server of the Shoot or for webhooks.
	waiting map[string]bool
	// leaving are the objects that were still terminating after the last apply, by bundle.
	leaving map[string][]leaving
	// rotation is the state of credential rotations.
	rotation credentials
	// referenced are the references of the declaration, as last read.
	referenced []references.Found
	// extensions are the Extensions of the operator, as last read.
	extensions []*unstructured.Unstructured
	// seeds are the last known Seeds of a virtual garden.
	seeds []render.SeedFact
	// found is the part of the input from clusters and registries.
	found foundInput
}

// foundInput is the part of an input that is in no file.
type foundInput struct {
	facts render.Facts
	// extensions are declared and live Extensions; nil before they were read.
	extensions        map[string]render.Extension
	charts            map[string]render.Chart
	resourceChecksums map[string]string
}

// Bundles returns the bundles of the last rendering.
func (s State) Bundles() []render.Bundle { return slices.Clone(s.bundles) }

// rendered starts the apply of a new rendering.
func (s *State) rendered(bundles []render.Bundle) {
	s.bundles, s.failures, s.unjudged = bundles, nil, ""
}

// renderedAgain replaces a bundle that was rendered with older facts.
func (s *State) renderedAgain(b render.Bundle) {
	s.bundles = slices.Clone(s.bundles)
	for i := range s.bundles {
		if s.bundles[i].Name == b.Name {
			s.bundles[i] = b
		}
	}
}

// latest returns the last renderings of bundles.
func (s State) latest(bundles []render.Bundle) []render.Bundle {
	out := slices.Clone(bundles)
	for i, b := range out {
		if at := slices.IndexFunc(s.bundles, func(o render.Bundle) bool { return o.Name == b.Name }); at >= 0 {
			out[i] = s.bundles[at]
		}
	}
	return out
}

// notJudged makes the state of the components unknown, with the reason.
func (s *State) notJudged(cause error) {
	s.bundles, s.unjudged = nil, strings.Join(Problems(cause), "; ")
}

// sent records the error of the last apply of a bundle, or its success.
func (s *State) sent(bundle string, err error) {
	s.failures = with(s.failures, bundle, strings.Join(Problems(err), "; "), err != nil)
}

// appliedAs records the last applied rendering of a bundle. A failed apply of a new rendering
// clears it, a failed repetition does not.
func (s *State) appliedAs(b render.Bundle, err error) {
	now := renderingOf(b)
	s.applied = with(s.applied, b.Name, now, err == nil || s.applied[b.Name] == now)
}

// waits records whether objects of a bundle wait for their API server or webhooks.
func (s *State) waits(bundle string, waits bool) {
	s.waiting = with(s.waiting, bundle, true, waits)
}

// left records the objects of a bundle that are still terminating after an apply. Nothing watches
// them, so FinishRemovals checks.
func (s *State) left(bundle string, found []leaving) {
	s.leaving = with(s.leaving, bundle, found, len(found) > 0)
}

// ended resets the State for the deletion of the owner: nothing is repaired, judged or requested
// any more.
func (s *State) ended(why string) {
	*s = State{accessSeen: s.accessSeen, rotation: s.rotation, extensions: s.extensions, found: s.found, seeds: s.seeds, unjudged: why}
}

// with returns a copy of a map with or without a value.
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

// subject is an owner during a call. The goroutines of a run share its State.
type subject struct {
	Owner
	// declared are the Extensions in Git; the Input has others, too.
	declared map[string]render.Extension

	mu   sync.Mutex
	last State
}

// from starts a call with the State of the last one.
func (o Owner) from(s State) *subject {
	at := &subject{Owner: o, declared: o.Input.Extensions, last: s}
	in := &at.Input
	in.Facts, in.Charts, in.ResourceChecksums = s.found.facts, s.found.charts, s.found.resourceChecksums
	if s.found.extensions != nil {
		in.Extensions = s.found.extensions
	}
	return at
}

// now returns the current State of an owner.
func (o *subject) now() State {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.last
}

// end returns the State at the end of a call, and disables OnState: steps of an interrupted flow
// may outlive the call.
func (o *subject) end() State {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.OnState = nil
	return o.last
}

// note is the only place that changes the State of an owner and its Input.
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

// Bundles returns the bundles of the last rendering.
func (o *subject) Bundles() []render.Bundle { return o.now().Bundles() }

// input returns a copy for goroutines outside the run.
func (o *subject) input() render.Input {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.Input
}
