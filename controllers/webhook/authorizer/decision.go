// SPDX-License-Identifier: Apache-2.0

package authorizer

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// verdict is the decision about a request.
type verdict string

const (
	allowed verdict = "allowed"
	// noOpinion leaves the decision to other authorizers: roles may allow requests that do not
	// concern a seed.
	noOpinion verdict = "noopinion"
	// denied stops other authorizers: the user makes a false claim about its identity.
	denied verdict = "denied"
)

// rule contains the permissions of an identity for a kind.
type rule struct {
	// unconditionalVerbs are verbs without conditions.
	unconditionalVerbs []string
	// relatedVerbs are verbs for objects of the owner. A list or watch of one object names it in
	// the field selector metadata.name.
	relatedVerbs []string
	// allowsReads allows get, list and watch of objects of the owner, and get of objects that do
	// not exist. Clients that create and delete objects need the NotFound error.
	allowsReads bool
	// selections are the selections that lists and watches may use instead of one name.
	selections func(requestScope) []selection
	// subresources may be read and written like the object.
	subresources []string
	// namespaces, if not empty, are the only allowed ones.
	namespaces func(requestScope) []string
	// canCreate decides in which namespaces objects may be created. An authorizer does not see
	// their content.
	canCreate func(requestScope, *request) bool
	// isException is checked before all other fields, also for subresources.
	isException func(requestScope, *request) bool
}

// requestScope is the identity that makes a request.
type requestScope struct {
	ownerKey
	role  role
	graph *graph
	now   time.Time
}

func (s requestScope) String() string {
	if s.kind == kindShoot {
		return "shoot " + s.namespace + "/" + s.name
	}
	return "seed " + s.name
}

// decide returns the verdict on a request, and the reason.
func (s requestScope) decide(rules map[kind]rule, r *request, unselected bool) (verdict, string) {
	rule, known := rules[r.kind]
	if !known || r.kind == kindNone {
		return noOpinion, fmt.Sprintf("a %s does not need %s", s.role, r.resource)
	}
	if rule.isException != nil && rule.isException(s, r) {
		return allowed, ""
	}
	if rule.namespaces != nil {
		if namespaces := rule.namespaces(s); !slices.Contains(namespaces, r.namespace) {
			return noOpinion, fmt.Sprintf("the %s of %s may access %s only in namespace %s", s.role, s, r.resource, strings.Join(namespaces, ", "))
		}
	}
	if r.subresource != "" && !slices.Contains(rule.subresources, r.subresource) {
		return noOpinion, fmt.Sprintf("a %s does not need subresource %s of %s", s.role, r.subresource, r.resource)
	}
	if r.subresource != "" && !r.hasVerb(verbGet, verbUpdate, verbPatch) {
		return noOpinion, fmt.Sprintf("the %s of %s may not %s %s", s.role, s, r.verb, r.describe())
	}
	if r.subresource == "" && r.hasVerb(rule.unconditionalVerbs...) {
		return allowed, ""
	}
	if r.hasVerb(verbCreate) && rule.canCreate != nil {
		if rule.canCreate(s, r) {
			return allowed, ""
		}
		return noOpinion, fmt.Sprintf("the %s of %s may not create %s there", s.role, s, r.describe())
	}
	isRead, isList := r.hasVerb(verbGet, verbList, verbWatch), r.hasVerb(verbList, verbWatch)
	if !r.hasVerb(rule.relatedVerbs...) && !(rule.allowsReads && isRead) {
		return noOpinion, fmt.Sprintf("the %s of %s may only %s %s", s.role, s, rule.verbs(), r.resource)
	}
	if unselected && rule.allowsReads && rule.selections != nil && isRead {
		return allowed, ""
	}
	var selections []selection
	if isList && rule.selections != nil {
		selections = rule.selections(s)
		if slices.ContainsFunc(selections, func(sel selection) bool { return sel.isSelectedBy(r) }) {
			return allowed, ""
		}
	}
	if r.name == "" {
		if isList {
			return noOpinion, fmt.Sprintf("the %s of %s may %s %s only by %s", s.role, s, r.verb, r.resource, describeSelections(selections))
		}
		return noOpinion, fmt.Sprintf("the %s of %s may %s only %s that it names", s.role, s, r.verb, r.resource)
	}
	if s.isOwnObject(r) {
		return allowed, ""
	}
	if rule.allowsReads && r.hasVerb(verbGet) && !s.graph.isKnown(r.objectKey) {
		return allowed, ""
	}
	return noOpinion, fmt.Sprintf("neither %s nor its objects refer to %s", s, r.describe())
}

// isOwnObject reports whether the object of a request belongs to the owner.
func (s requestScope) isOwnObject(r *request) bool {
	if s.kind == kindSeed && (r.objectKey == objectKey(s.ownerKey) || r.objectKey == (objectKey{kind: kindNamespace, name: seedNamespace(s.name)})) ||
		s.kind == kindShoot && r.objectKey == objectKey(s.ownerKey) && r.hasVerb(verbGet, verbList, verbWatch) {
		return true // also before it exists
	}
	if is, may := s.graph.bootstrapState(r.objectKey, s.now); is && !may {
		return false
	}
	return s.graph.isOwnedBy(r.objectKey, s.ownerKey)
}

func (r rule) verbs() string {
	all := slices.Concat(r.unconditionalVerbs, r.relatedVerbs)
	if r.allowsReads {
		all = append(all, verbGet, verbList, verbWatch)
	}
	if r.canCreate != nil {
		all = append(all, verbCreate)
	}
	slices.Sort(all)
	all = slices.Compact(all)
	if len(all) == 0 {
		return "do nothing with"
	}
	return strings.Join(all, ", ")
}

func describeSelections(selections []selection) string {
	ways := []string{"name (field metadata.name)"}
	for _, s := range selections {
		ways = append(ways, s.String())
	}
	return strings.Join(ways, ", or ")
}

func sortedKeys(m map[string]string) []string { return slices.Sorted(maps.Keys(m)) }
