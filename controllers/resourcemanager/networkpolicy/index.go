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

// index is the state of the cluster. Methods that record a change return the Services whose
// policies it may affect. Maps are keyed for lookups: no change is compared with everything.
type index struct {
	mu sync.Mutex
	// handled selects the namespaces whose Services get policies; empty means all.
	handled []labels.Selector
	// controller is the ingress controller; nil ignores Ingresses.
	controller *IngressControllerSelector
	// linger is how long clients count after they are deleted.
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

	// examined counts comparisons, for the tests: cost must not grow faster than the cluster.
	examined int
}

type keySet = sets.Set[types.NamespacedName]

// clients are the pods of a namespace with a label.
type clients struct{ namespace, label string }

// presence counts the pods of a namespace with a label; without pods it ends after the linger time.
type presence struct {
	pods int
	// left counts how often the last pod disappeared.
	left int
}

type namespace struct {
	labels      labels.Set
	terminating bool
}

// effect is the consequence of a change.
type effect struct {
	// services must be reconciled.
	services []types.NamespacedName
	// gone are clients whose last pod disappeared; call expire for them after the linger time.
	gone []departure
	// fight is a policy of ours that somebody else changed.
	fight *types.NamespacedName
}

// departure is the moment when the last client disappeared.
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

// plan is the work for one Service.
type plan struct {
	// wait says that nothing can be done now: the namespace of the Service is terminating, or its
	// pods are unknown.
	wait bool
	// wanted are the policies that should exist.
	wanted policySet
	// apply are the wanted policies that differ or do not exist, in order.
	apply []*networkingv1.NetworkPolicy
	// take are the policies in apply that exist as ours and that no other Service wants.
	take keySet
	// remove are policies of the Service that are not wanted.
	remove []*networkingv1.NetworkPolicy
	// problems are reported as events.
	problems []problem
}

// planFor compares the wanted policies of a Service with the live ones.
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
		// In a terminating namespace, policies stay for the last connections until the namespace
		// controller deletes them.
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
		return p // an unreadable annotation may ask for a policy that would be removed
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
			return // nothing can be created there
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

// wantedBy returns the policies that a Service asks for; none without a Service or if its namespace
// is not handled.
func (x *index) wantedBy(t *target) policySet {
	if t == nil || t.blind || !x.handles(t.key.Namespace) {
		return nil
	}
	return t.policies(func(r rule) []string { return x.clientsOf(t, r) }, x.exposuresOf(t))
}

// clientsOf returns the namespaces with pods that have the label of a rule, in order.
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

// handles reports whether Services of a namespace get policies.
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

// insert and remove maintain a map of sets without empty ones.
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

// sorted returns names in order.
func sorted(keys iter.Seq[types.NamespacedName]) []types.NamespacedName {
	return slices.SortedFunc(keys, func(a, b types.NamespacedName) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
}
