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
	// always are verbs without conditions.
	always []string
	// related are verbs for objects of the owner. A list or watch of one object names it in the
	// field selector metadata.name.
	related []string
	// reads allows get, list and watch of objects of the owner, and get of objects that do not
	// exist. Clients that create and delete objects need the NotFound error.
	reads bool
	// selects are the selections that lists and watches may use instead of one name.
	selects func(scope) []selection
	// subresources may be read and written like the object.
	subresources []string
	// namespaces, if not empty, are the only allowed ones.
	namespaces func(scope) []string
	// creates decides in which namespaces objects may be created. An authorizer does not see their
	// content.
	creates func(scope, *request) bool
	// special is checked before all other fields, also for subresources.
	special func(scope, *request) bool
}

// scope is the identity that makes a request.
type scope struct {
	owner
	as    role
	graph *graph
	now   time.Time
}

func (s scope) String() string {
	if s.kind == kindShoot {
		return "shoot " + s.namespace + "/" + s.name
	}
	return "seed " + s.name
}

// decide returns the verdict on a request, and the reason.
func (s scope) decide(rules map[kind]rule, r *request, unselected bool) (verdict, string) {
	rule, known := rules[r.kind]
	if !known || r.kind == kindNone {
		return noOpinion, fmt.Sprintf("%s is nothing that a %s needs", r.resource, s.as)
	}
	if rule.special != nil && rule.special(s, r) {
		return allowed, ""
	}
	if rule.namespaces != nil {
		if namespaces := rule.namespaces(s); !slices.Contains(namespaces, r.namespace) {
			return noOpinion, fmt.Sprintf("the %s of %s reaches %s only in namespace %s", s.as, s, r.resource, strings.Join(namespaces, ", "))
		}
	}
	if r.subresource != "" && !slices.Contains(rule.subresources, r.subresource) {
		return noOpinion, fmt.Sprintf("subresource %s of %s is nothing that a %s needs", r.subresource, r.resource, s.as)
	}
	if r.subresource != "" && !r.is(verbGet, verbUpdate, verbPatch) {
		return noOpinion, fmt.Sprintf("the %s of %s may not %s %s", s.as, s, r.verb, r.at())
	}
	if r.subresource == "" && r.is(rule.always...) {
		return allowed, ""
	}
	if r.is(verbCreate) && rule.creates != nil {
		if rule.creates(s, r) {
			return allowed, ""
		}
		return noOpinion, fmt.Sprintf("the %s of %s makes no %s there", s.as, s, r.at())
	}
	isRead, isList := r.is(verbGet, verbList, verbWatch), r.is(verbList, verbWatch)
	if !r.is(rule.related...) && !(rule.reads && isRead) {
		return noOpinion, fmt.Sprintf("the %s of %s may only %s %s", s.as, s, rule.verbs(), r.resource)
	}
	if unselected && rule.reads && rule.selects != nil && isRead {
		return allowed, ""
	}
	var selections []selection
	if isList && rule.selects != nil {
		selections = rule.selects(s)
		if slices.ContainsFunc(selections, func(sel selection) bool { return sel.within(r) }) {
			return allowed, ""
		}
	}
	if r.name == "" {
		if isList {
			return noOpinion, fmt.Sprintf("the %s of %s may %s %s only by %s", s.as, s, r.verb, r.resource, asked(selections))
		}
		return noOpinion, fmt.Sprintf("the %s of %s may %s only %s that it names", s.as, s, r.verb, r.resource)
	}
	if s.mine(r) {
		return allowed, ""
	}
	if rule.reads && r.is(verbGet) && !s.graph.there(r.node) {
		return allowed, ""
	}
	return noOpinion, fmt.Sprintf("%s is nothing that %s, or what belongs to it, refers to", r.at(), s)
}

// mine reports whether the object of a request belongs to the owner.
func (s scope) mine(r *request) bool {
	if s.kind == kindSeed && (r.node == node(s.owner) || r.node == (node{kind: kindNamespace, name: seedNamespace(s.name)})) ||
		s.kind == kindShoot && r.node == node(s.owner) && r.is(verbGet, verbList, verbWatch) {
		return true // also before it exists
	}
	if is, may := s.graph.bootstrap(r.node, s.now); is && !may {
		return false
	}
	return s.graph.belongs(r.node, s.owner)
}

func (r rule) verbs() string {
	all := slices.Concat(r.always, r.related)
	if r.reads {
		all = append(all, verbGet, verbList, verbWatch)
	}
	if r.creates != nil {
		all = append(all, verbCreate)
	}
	slices.Sort(all)
	all = slices.Compact(all)
	if len(all) == 0 {
		return "do nothing with"
	}
	return strings.Join(all, ", ")
}

func asked(selections []selection) string {
	ways := []string{"name (field metadata.name)"}
	for _, s := range selections {
		ways = append(ways, s.String())
	}
	return strings.Join(ways, ", or ")
}

func sortedKeys(m map[string]string) []string { return slices.Sorted(maps.Keys(m)) }
