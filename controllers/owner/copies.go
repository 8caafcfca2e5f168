package owner

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/change"
	"github.com/pergola-dev/pergola/controllers/permit"
	"github.com/pergola-dev/pergola/plan"
	"github.com/pergola-dev/pergola/render"
)

// labelCopy is on each copy, for the garbage collector (upstream's).
const labelCopy = "resources.gardener.cloud/garbage-collectable-reference"

// isCopy tells a ConfigMap or Secret that render has named after its content: another one takes its
// place as secrets and facts change, which no difference of revisions knows. A name alone says
// nothing: anybody may choose one that looks like it.
func isCopy(e apply.Entry) bool {
	_, hashed := plan.Unhashed(e.Name)
	return hashed && (e.Kind == "ConfigMap" || e.Kind == "Secret") && e.Group() == "" && e.Labels[labelCopy] == "true"
}

var operatingSystemConfig = schema.GroupKind{Group: "extensions.gardener.cloud", Kind: "OperatingSystemConfig"}

// isReplaced tells a copy, or the OperatingSystemConfig of a pool, in whose place there is another
// one under a new hash: a difference shows one that changes its name, and none that goes, so that
// the gate does not count it either. With the pool itself it does go.
func isReplaced(e apply.Entry, role string, bundles []render.Bundle) bool {
	base, hashed := plan.Unhashed(e.Name)
	if !hashed || e.GroupKind() != operatingSystemConfig && !isCopy(e) {
		return false
	}
	for _, b := range bundles {
		for _, o := range b.Objects {
			next := apply.RefOf(o.Unstructured)
			if b.Cluster != role || next.GroupKind() != e.GroupKind() || next.Namespace != e.Namespace || next.Name == e.Name {
				continue
			}
			if other, hashed := plan.Unhashed(next.Name); hashed && other == base {
				return true
			}
		}
	}
	return false
}

// gateFor is the gate for objects of a bundle: a review is asked for all but copies.
func (r *run) gateFor(entries []apply.Entry) permit.Gate {
	gate := r.reconciler.Gate
	gate.Before = apply.HeldBefore(entries)
	reviewed := gate.Reviewed
	if reviewed == nil {
		return gate
	}
	exempt := map[change.Ref]bool{}
	for _, e := range entries {
		if isCopy(e) {
			exempt[e.Ref] = true
		}
	}
	gate.Reviewed = func(cluster string, ref change.Ref) bool { return exempt[ref] || reviewed(cluster, ref) }
	return gate
}
