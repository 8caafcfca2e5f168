package owner

import (
	"regexp"

	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/plan"
)

// labelCopy is on each copy, for the garbage collector (upstream's).
const labelCopy = "resources.gardener.cloud/garbage-collectable-reference"

// copyName ends with the hash that render gives the name of a copy.
var copyName = regexp.MustCompile(`-[0-9a-f]{8}$`)

// isCopy tells a ConfigMap or Secret that render has named after its content: another one takes its place as secrets and facts change, which no
// difference of revisions knows. A name alone says nothing: anybody may choose one that looks like it.
func isCopy(e apply.Entry) bool {
	return (e.Kind == "ConfigMap" || e.Kind == "Secret") && e.Group() == "" && e.Labels[labelCopy] == "true" && copyName.MatchString(e.Name)
}

// gateFor is the gate for objects of a bundle: a review is asked for all but copies.
func (r *run) gateFor(entries []apply.Entry) plan.Gate {
	gate := r.Gate
	reviewed := gate.Reviewed
	if reviewed == nil {
		return gate
	}
	copies := map[plan.Ref]bool{}
	for _, e := range entries {
		if isCopy(e) {
			copies[e.Ref] = true
		}
	}
	gate.Reviewed = func(cluster string, ref plan.Ref) bool { return copies[ref] || reviewed(cluster, ref) }
	return gate
}
