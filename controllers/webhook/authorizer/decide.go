package authorizer

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// verdict on a request.
type verdict string

const (
	allowed verdict = "allowed"
	// noOpinion leaves it to the other authorizers: what is not the matter of a seed may be allowed
	// by roles.
	noOpinion verdict = "noopinion"
	// denied keeps the other authorizers from being asked: who asks is not who he says.
	denied verdict = "denied"
)

// rule is what an identity may do with a kind.
type rule struct {
	// always are verbs that need nothing.
	always []string
	// related are verbs for objects that belong to the owner. A list or watch of one object names
	// it in the field selector metadata.name.
	related []string
	// reads: get, list and watch of objects that belong to the owner, and of those that are not
	// there: then the answer is that they are not, which whoever makes and removes them has to be
	// told.
	reads bool
	// selects are what lists and watches may ask for instead of one name.
	selects func(scope) []selection
	// subresources that may be read and written as the object.
	subresources []string
	// namespaces, if not empty, are the only ones.
	namespaces func(scope) []string
	// creates says in which namespaces objects may be made. What they may contain is no matter of
	// an authorizer.
	creates func(scope, *request) bool
	// special comes before all others, for subresources, too.
	special func(scope, *request) bool
}

// scope is for whom a request is made.
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

// decide says what becomes of a request, and why.
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

// mine says whether the object of a request belongs to the owner.
func (s scope) mine(r *request) bool {
	if s.kind == kindSeed && (r.node == node(s.owner) || r.node == (node{kind: kindNamespace, name: seedNamespace(s.name)})) ||
		s.kind == kindShoot && r.node == node(s.owner) && r.is(verbGet, verbList, verbWatch) {
		return true // also before it is there
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
