package owner

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/plan"
	"github.com/pergola-dev/pergola/render"
)

// labelCopy is on each copy, for the garbage collector (upstream's).
const labelCopy = "resources.gardener.cloud/garbage-collectable-reference"

// isCopy tells a ConfigMap or Secret that render has named after its content: another one takes its place as secrets and facts change, which no
// difference of revisions knows. A name alone says nothing: anybody may choose one that looks like it.
func isCopy(e apply.Entry) bool {
	_, hashed := plan.Unhashed(e.Name)
	return hashed && (e.Kind == "ConfigMap" || e.Kind == "Secret") && e.Group() == "" && e.Labels[labelCopy] == "true"
}

var operatingSystemConfig = schema.GroupKind{Group: "extensions.gardener.cloud", Kind: "OperatingSystemConfig"}

// isReplaced tells an OperatingSystemConfig whose pool has another one under a new hash: a difference shows one that changes its name, and none that
// goes. With the pool itself it does go.
func isReplaced(ref plan.Ref, bundles []render.Bundle) bool {
	pool, hashed := plan.Unhashed(ref.Name)
	if ref.GroupKind() != operatingSystemConfig || !hashed {
		return false
	}
	for _, b := range bundles {
		for _, o := range b.Objects {
			next := apply.RefOf(o.Unstructured)
			if next.GroupKind() != operatingSystemConfig || next.Namespace != ref.Namespace || next.Name == ref.Name {
				continue
			}
			if base, hashed := plan.Unhashed(next.Name); hashed && base == pool {
				return true
			}
		}
	}
	return false
}

// gateFor is the gate for objects of a bundle: a review is asked for all but copies and what another one under a new hash replaces.
func (r *run) gateFor(entries []apply.Entry) plan.Gate {
	gate := r.Gate
	reviewed := gate.Reviewed
	if reviewed == nil {
		return gate
	}
	bundles := r.owner.Bundles()
	exempt := map[plan.Ref]bool{}
	for _, e := range entries {
		if isCopy(e) || isReplaced(e.Ref, bundles) {
			exempt[e.Ref] = true
		}
	}
	gate.Reviewed = func(cluster string, ref plan.Ref) bool { return exempt[ref] || reviewed(cluster, ref) }
	return gate
}
