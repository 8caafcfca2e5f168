package networkpolicy

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"slices"
	"sync"
	"time"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
)

// index is what is known of the cluster. Its methods that take a change give the Services whose
// policies may change by it. All maps are kept by what is looked up, so that neither a change nor a
// Service is compared with all there is.
type index struct {
	mu sync.Mutex
	// handled are selectors of the namespaces whose Services get policies; none are all.
	handled []labels.Selector
	// controller is that of Ingresses; nil if they are not looked at.
	controller *IngressControllerSelector
	// linger is how long clients count that are gone.
	linger time.Duration

	services   map[types.NamespacedName]*target
	servicesIn map[string]keySet
	// byLocal and byForeign are the Services with a rule for a label of clients in their own or in
	// other namespaces.
	byLocal   map[clients]keySet
	byForeign map[string]keySet

	namespaces map[string]*namespace

	// pods are the labels of all pods.
	pods map[types.NamespacedName]labels.Set
	// present are the pods by label and namespace, labelsIn the labels by namespace.
	present  map[string]map[string]*presence
	labelsIn map[string]sets.Set[string]

	exposures exposures
	policies  policies

	// examined counts what was looked at, for the tests: cost must not grow faster than the
	// cluster.
	examined int
}

type keySet = sets.Set[types.NamespacedName]

// clients are the pods of a namespace with a label.
type clients struct{ namespace, label string }

// presence is how many pods of a namespace carry a label; with none it is gone for good when the
// linger time is over.
type presence struct {
	pods int
	// left counts how often the last one went.
	left int
}

type namespace struct {
	labels      labels.Set
	terminating bool
}

// effect is what follows from a change.
type effect struct {
	// services are to be looked at.
	services []types.NamespacedName
	// gone are clients of which the last went; expire is to be called for them after the linger
	// time.
	gone []departure
	// fight is a policy of ours that somebody else changed.
	fight *types.NamespacedName
}

// departure is the moment at which the last client went.
type departure struct {
	clients
	left int
}

func newIndex(handled []labels.Selector, controller *IngressControllerSelector, linger time.Duration) *index {
	return &index{
		handled: handled, controller: controller, linger: linger,
		services: map[types.NamespacedName]*target{}, servicesIn: map[string]keySet{}, byLocal: map[clients]keySet{}, byForeign: map[string]keySet{},
		namespaces: map[string]*namespace{},
		pods:       map[types.NamespacedName]labels.Set{}, present: map[string]map[string]*presence{}, labelsIn: map[string]sets.Set[string]{},
		exposures: newExposures(), policies: newPolicies(),
	}
}

// plan is what is to be done for a Service.
type plan struct {
	// wait says that nothing is to be done now: the namespace of the Service is going away, or what
	// the Service wants is not known.
	wait bool
	// wanted are the policies there should be.
	wanted policySet
	// apply are those of them that are not as wanted, in order.
	apply []*networkingv1.NetworkPolicy
	// take says which of these are there already, as policies of the Service or of one that is
	// gone.
	take keySet
	// remove are policies of the Service that are not wanted.
	remove []*networkingv1.NetworkPolicy
	// problems are for people.
	problems []problem
}

// planFor compares what a Service wants with what is there.
func (x *index) planFor(key types.NamespacedName) plan {
	x.mu.Lock()
	defer x.mu.Unlock()
	p := plan{take: keySet{}}
	t := x.services[key]
	if !x.handles(key.Namespace) {
		t = nil
	}
	if t != nil {
		p.problems = slices.Clone(t.problems)
		// What serves the last connections of a namespace that goes stays until the namespace
		// controller takes it.
		p.wait = t.blind || x.terminating(key.Namespace)
	}
	if p.wait {
		return p
	}
	p.wanted = x.wantedBy(t)
	x.policies.expect(key, p.wanted)
	for _, name := range p.wanted.keys() {
		x.compare(&p, key, name)
	}
	if t != nil && len(t.problems) > 0 {
		return p // what cannot be read may ask for what would be removed
	}
	for _, name := range sorted(maps.Keys(x.policies.of[key])) {
		if p.wanted[name] == nil && !x.terminating(name.Namespace) {
			p.remove = append(p.remove, x.policies.live[name])
		}
	}
	return p
}

// compare decides about one wanted policy.
func (x *index) compare(p *plan, service, name types.NamespacedName) {
	want, live := p.wanted[name], x.policies.live[name]
	switch {
	case live == nil:
		if ns := x.namespaces[name.Namespace]; ns == nil || ns.terminating {
			return // nothing can be made there
		}
	case !isOurs(live):
		p.problems = append(p.problems, problem{reasonTaken, name.String(),
			fmt.Sprintf("NetworkPolicy %s was made by somebody else (it has no label %s) and stays as it is: delete or rename it", name, LabelServiceName)})
		x.policies.wait(name, service)
		return
	case serviceOf(live) != service && serviceOf(live) != types.NamespacedName{} && x.wantedBy(x.services[serviceOf(live)])[name] != nil:
		p.problems = append(p.problems, problem{reasonTaken, name.String(),
			fmt.Sprintf("NetworkPolicy %s is that of Service %s, which wants one of this name too: rename one of the two Services", name, serviceOf(live))})
		x.policies.wait(name, service)
		return
	case isAsWanted(live, want):
		return
	default:
		p.take.Insert(name)
	}
	p.apply = append(p.apply, want)
}

// wantedBy are the policies that a Service asks for; none if there is no such Service or its
// namespace is not handled.
func (x *index) wantedBy(t *target) policySet {
	if t == nil || t.blind || !x.handles(t.key.Namespace) {
		return nil
	}
	return t.policies(func(r rule) []string { return x.clientsOf(t, r) }, x.exposuresOf(t))
}

// clientsOf are the namespaces where pods carry the label of a rule, in order.
func (x *index) clientsOf(t *target, r rule) []string {
	var out []string
	x.examined++
	if x.present[r.local][t.key.Namespace] != nil {
		out = append(out, t.key.Namespace)
	}
	if len(t.namespaces) == 0 {
		return out
	}
	for name := range x.present[r.foreign] {
		x.examined++
		if ns := x.namespaces[name]; name != t.key.Namespace && ns != nil && t.selects(ns.labels) {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// handles tells whether Services of a namespace get policies.
func (x *index) handles(name string) bool {
	if len(x.handled) == 0 {
		return true
	}
	var set labels.Set
	if ns := x.namespaces[name]; ns != nil {
		set = ns.labels
	}
	return slices.ContainsFunc(x.handled, func(s labels.Selector) bool { return s.Matches(set) })
}

func (x *index) terminating(name string) bool {
	ns := x.namespaces[name]
	return ns != nil && ns.terminating
}

// insert and remove keep a map of sets without empty ones.
func insert[K, V comparable](m map[K]sets.Set[V], key K, value V) {
	if m[key] == nil {
		m[key] = sets.Set[V]{}
	}
	m[key].Insert(value)
}

func remove[K, V comparable](m map[K]sets.Set[V], key K, value V) {
	if m[key].Delete(value); len(m[key]) == 0 {
		delete(m, key)
	}
}

// sorted gives names in order.
func sorted(keys iter.Seq[types.NamespacedName]) []types.NamespacedName {
	return slices.SortedFunc(keys, func(a, b types.NamespacedName) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
}
