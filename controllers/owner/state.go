// SPDX-License-Identifier: Apache-2.0

package owner

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/controllers/references"
	"github.com/pergola-dev/pergola/render"
)

// State is the result of an owner's last run. It is a value: transitions replace lists and maps
// instead of changing them, so that copies stay valid.
type State struct {
	// bundles are the bundles of the last render.
	bundles []render.Bundle
	// failures has the error of the last apply, by bundle.
	failures map[string]string
	// appliedRenderings has the last applied rendering, by bundle.
	appliedRenderings map[string]string
	// unjudgedReason is the reason why there are no bundles to judge: the last reconciliation
	// failed before rendering, or the owner is being deleted.
	unjudgedReason string
	// access is the access to the API server that the last reconciliation has generated.
	access generatedAccess
	// accessCheckedAt is the time of the last check that the Secret with the access exists.
	accessCheckedAt time.Time
	// waitingBundles are the bundles whose objects wait for the API server of the Shoot or for
	// webhooks.
	waitingBundles map[string]bool
	// terminating are the objects that were still terminating after the last apply, by bundle.
	terminating map[string][]terminatingObject
	// rotation is the state of credential rotations.
	rotation rotationStatus
	// references are the references of the declaration, as last read.
	references []references.LookupResult
	// extensions are the Extensions of the operator, as last read.
	extensions []*unstructured.Unstructured
	// seeds are the last known Seeds of a virtual garden.
	seeds []render.SeedFact
	// externalInput is the part of the input from clusters and registries.
	externalInput externalInput
}

// externalInput is the part of an input that is in no file.
type externalInput struct {
	facts render.Facts
	// extensions are declared and live Extensions; nil before they were read.
	extensions        map[string]render.Extension
	charts            map[string]render.Chart
	resourceChecksums map[string]string
}

// Bundles returns the bundles of the last rendering.
func (s State) Bundles() []render.Bundle { return slices.Clone(s.bundles) }

// setBundles starts the apply of a new rendering.
func (s *State) setBundles(bundles []render.Bundle) {
	s.bundles, s.failures, s.unjudgedReason = bundles, nil, ""
}

// replaceBundle replaces a bundle that was rendered with older facts.
func (s *State) replaceBundle(b render.Bundle) {
	s.bundles = slices.Clone(s.bundles)
	for i := range s.bundles {
		if s.bundles[i].Name == b.Name {
			s.bundles[i] = b
		}
	}
}

// latestBundles returns the last renderings of bundles.
func (s State) latestBundles(bundles []render.Bundle) []render.Bundle {
	out := slices.Clone(bundles)
	for i, b := range out {
		if at := slices.IndexFunc(s.bundles, func(o render.Bundle) bool { return o.Name == b.Name }); at >= 0 {
			out[i] = s.bundles[at]
		}
	}
	return out
}

// setUnknown makes the state of the components unknown, with the reason.
func (s *State) setUnknown(cause error) {
	s.bundles, s.unjudgedReason = nil, strings.Join(apply.Problems(cause), "; ")
}

// recordApply records the error of the last apply of a bundle, or its success.
func (s *State) recordApply(bundle string, err error) {
	s.failures = withEntry(s.failures, bundle, strings.Join(apply.Problems(err), "; "), err != nil)
}

// recordRendering records the last applied rendering of a bundle. A failed apply of a new rendering
// clears it, but a failed repetition does not.
func (s *State) recordRendering(b render.Bundle, err error) {
	now := renderingID(b)
	s.appliedRenderings = withEntry(s.appliedRenderings, b.Name, now, err == nil || s.appliedRenderings[b.Name] == now)
}

// setWaiting records whether objects of a bundle wait for their API server or webhooks.
func (s *State) setWaiting(bundle string, waits bool) {
	s.waitingBundles = withEntry(s.waitingBundles, bundle, true, waits)
}

// setTerminating records the objects of a bundle that are still terminating after an apply. Nothing
// watches them, so FinishRemovals checks.
func (s *State) setTerminating(bundle string, found []terminatingObject) {
	s.terminating = withEntry(s.terminating, bundle, found, len(found) > 0)
}

// reset resets the State for the deletion of the owner: nothing is repaired, judged or requested
// from then on.
func (s *State) reset(why string) {
	*s = State{accessCheckedAt: s.accessCheckedAt, rotation: s.rotation, extensions: s.extensions, externalInput: s.externalInput, seeds: s.seeds, unjudgedReason: why}
}

// withEntry returns a copy of a map with or without a value.
func withEntry[V any](of map[string]V, key string, value V, has bool) map[string]V {
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

// ownerSession is an owner during a call. The goroutines of a run share its State.
type ownerSession struct {
	Owner
	// declaredExtensions are the Extensions in Git; the Input has others, too.
	declaredExtensions map[string]render.Extension

	mu    sync.Mutex
	state State
}

// newSession starts a call with the State of the last one.
func (o Owner) newSession(s State) *ownerSession {
	at := &ownerSession{Owner: o, declaredExtensions: o.Input.Extensions, state: s}
	in := &at.Input
	in.Facts, in.Charts, in.ResourceChecksums = s.externalInput.facts, s.externalInput.charts, s.externalInput.resourceChecksums
	if s.externalInput.extensions != nil {
		in.Extensions = s.externalInput.extensions
	}
	return at
}

// currentState returns the current State of an owner.
func (o *ownerSession) currentState() State {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.state
}

// finish returns the State at the end of a call, and disables OnState: steps of an interrupted flow
// may outlive the call.
func (o *ownerSession) finish() State {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.OnState = nil
	return o.state
}

// updateState is the only place that changes the State of an owner and its Input.
func (o *ownerSession) updateState(change func(*State)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	change(&o.state)
	o.state.externalInput = externalInput{facts: o.Input.Facts, charts: o.Input.Charts, resourceChecksums: o.Input.ResourceChecksums}
	if o.state.extensions != nil {
		o.state.externalInput.extensions = o.Input.Extensions
	}
	if o.OnState != nil {
		o.OnState(o.state)
	}
}

func (o *ownerSession) String() string { return o.renderOwner().String() }

// ControlPlane is Owner.ControlPlane, safe while the Input changes.
func (o *ownerSession) ControlPlane() string { return o.renderOwner().ControlPlaneNamespace }

func (o *ownerSession) renderOwner() render.Owner { return o.inputCopy().Owner }

// Bundles returns the bundles of the last rendering.
func (o *ownerSession) Bundles() []render.Bundle { return o.currentState().Bundles() }

// inputCopy returns a copy for goroutines outside the run.
func (o *ownerSession) inputCopy() render.Input {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.Input
}
