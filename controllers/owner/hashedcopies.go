// SPDX-License-Identifier: Apache-2.0

package owner

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/change"
	"github.com/pergola-dev/pergola/controllers/permit"
	"github.com/pergola-dev/pergola/plan"
	"github.com/pergola-dev/pergola/render"
)

// labelGarbageCollectable is on each copy, for the garbage collector (upstream's).
const labelGarbageCollectable = "resources.gardener.cloud/garbage-collectable-reference"

// isHashedCopy reports whether an object is a ConfigMap or Secret that render has named after its
// content. New secrets and facts replace it, which no difference of revisions shows. The label is
// required, because anybody may choose a name with a hash.
func isHashedCopy(e apply.Entry) bool {
	_, hashed := plan.TrimContentHash(e.Name)
	return hashed && (e.Kind == "ConfigMap" || e.Kind == "Secret") && e.Group() == "" && e.Labels[labelGarbageCollectable] == "true"
}

var operatingSystemConfig = schema.GroupKind{Group: "extensions.gardener.cloud", Kind: "OperatingSystemConfig"}

// isReplacedByHash reports whether a copy, or the OperatingSystemConfig of a pool, is replaced by
// one with a new hash. A difference shows a rename and not a deletion, so the gate does not count
// it. Without its pool, the OperatingSystemConfig is deleted.
func isReplacedByHash(e apply.Entry, role string, bundles []render.Bundle) bool {
	base, hashed := plan.TrimContentHash(e.Name)
	if !hashed || e.GroupKind() != operatingSystemConfig && !isHashedCopy(e) {
		return false
	}
	for _, b := range bundles {
		for _, o := range b.Objects {
			next := apply.RefOf(o.Unstructured)
			if b.Cluster != role || next.GroupKind() != e.GroupKind() || next.Namespace != e.Namespace || next.Name == e.Name {
				continue
			}
			if other, hashed := plan.TrimContentHash(next.Name); hashed && other == base {
				return true
			}
		}
	}
	return false
}

// gateFor returns the gate for objects of a bundle, with reviews for all objects except copies.
func (r *run) gateFor(entries []apply.Entry) permit.Gate {
	gate := r.reconciler.Gate
	gate.PreviouslyHeld = apply.HeldReasons(entries)
	reviewed := gate.Reviewed
	if reviewed == nil {
		return gate
	}
	exempt := map[change.Ref]bool{}
	for _, e := range entries {
		if isHashedCopy(e) {
			exempt[e.Ref] = true
		}
	}
	gate.Reviewed = func(cluster string, ref change.Ref) bool { return exempt[ref] || reviewed(cluster, ref) }
	return gate
}
