// SPDX-License-Identifier: Apache-2.0

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
	// namespaceSelectors selects the namespaces whose Services get policies; empty means all.
	namespaceSelectors []labels.Selector
	// ingressController is the ingress controller; nil ignores Ingresses.
	ingressController *IngressControllerSelector
	// linger is how long clients count after they are deleted.
	linger time.Duration

	services            map[types.NamespacedName]*serviceTraffic
	servicesByNamespace map[string]nameSet
	// byLocalLabel and byForeignLabel are the Services with a rule for a label of clients in their
	// own or in other namespaces.
	byLocalLabel   map[clientGroup]nameSet
	byForeignLabel map[string]nameSet

	namespaces map[string]*namespace

	// pods are the labels of all pods.
	pods map[types.NamespacedName]labels.Set
	// clientCounts are the pods by label and namespace; labelsByNamespace are the labels by
	// namespace.
	clientCounts      map[string]map[string]*clientCount
	labelsByNamespace map[string]sets.Set[string]

	exposures exposureIndex
	policies  policyIndex

	// comparisons counts comparisons, for the tests: cost must not grow faster than the cluster.
	comparisons int
}

type nameSet = sets.Set[types.NamespacedName]

// clientGroup is the group of the pods of a namespace with a label.
type clientGroup struct{ namespace, label string }

// clientCount counts the pods of a namespace with a label; without pods it ends after the linger
// time.
type clientCount struct {
	pods int
	// generation counts how often the last pod disappeared.
	generation int
}

type namespace struct {
	labels      labels.Set
	terminating bool
}

// indexEffect is the consequence of a change.
type indexEffect struct {
	// services must be reconciled.
	services []types.NamespacedName
	// departed are clients whose last pod disappeared; call expire for them after the linger time.
	departed []clientDeparture
	// conflict is a policy of ours that someone else changed.
	conflict *types.NamespacedName
}

// clientDeparture is the moment when the last client disappeared.
type clientDeparture struct {
	clientGroup
	generation int
}

func newIndex(handled []labels.Selector, controller *IngressControllerSelector, linger time.Duration) *index {
	return &index{
		namespaceSelectors: handled, ingressController: controller, linger: linger,
		services: map[types.NamespacedName]*serviceTraffic{}, servicesByNamespace: map[string]nameSet{}, byLocalLabel: map[clientGroup]nameSet{}, byForeignLabel: map[string]nameSet{},
		namespaces: map[string]*namespace{},
		pods:       map[types.NamespacedName]labels.Set{}, clientCounts: map[string]map[string]*clientCount{}, labelsByNamespace: map[string]sets.Set[string]{},
		exposures: newExposureIndex(), policies: newPolicyIndex(),
	}
}

// plan is the work for one Service.
type plan struct {
	// isBlocked says that nothing can be done now: the namespace of the Service is terminating, or
	// its pods are unknown.
	isBlocked bool
	// wanted are the policies that should exist.
	wanted policySet
	// apply are the wanted policies that differ or do not exist, in order.
	apply []*networkingv1.NetworkPolicy
	// adopt are the policies in apply that exist as ours and that no other Service wants.
	adopt nameSet
	// deletions are policies of the Service that are not wanted.
	deletions []*networkingv1.NetworkPolicy
	// problems are reported as events.
	problems []problem
}

// planFor compares the wanted policies of a Service with the live ones.
func (x *index) planFor(key types.NamespacedName) plan {
	x.mu.Lock()
	defer x.mu.Unlock()
	p := plan{adopt: nameSet{}}
	t := x.services[key]
	if !x.isManagedNamespace(key.Namespace) {
		t = nil
	}
	if t != nil {
		p.problems = slices.Clone(t.problems)
		// In a terminating namespace, policies stay for the last connections until the namespace
		// controller deletes them.
		p.isBlocked = t.hasUnknownPods || x.isTerminating(key.Namespace)
	}
	if p.isBlocked {
		return p
	}
	p.wanted = x.wantedPolicies(t)
	x.policies.setWanted(key, p.wanted)
	for _, name := range p.wanted.keys() {
		x.planPolicy(&p, key, name)
	}
	if t != nil && len(t.problems) > 0 {
		return p // an unreadable annotation may ask for a policy that would be removed
	}
	for _, name := range sortedNames(maps.Keys(x.policies.byService[key])) {
		if p.wanted[name] == nil && !x.isTerminating(name.Namespace) {
			p.deletions = append(p.deletions, x.policies.live[name])
		}
	}
	return p
}

// planPolicy decides about one wanted policy.
func (x *index) planPolicy(p *plan, service, name types.NamespacedName) {
	want, live := p.wanted[name], x.policies.live[name]
	switch {
	case live == nil:
		if ns := x.namespaces[name.Namespace]; ns == nil || ns.terminating {
			return // nothing can be created there
		}
	case !isOwnPolicy(live):
		p.problems = append(p.problems, problem{reasonNameTaken, name.String(),
			fmt.Sprintf("NetworkPolicy %s belongs to another owner (it has no label %s) and stays unchanged: delete or rename it", name, LabelServiceName)})
		x.policies.addWaiting(name, service)
		return
	case serviceOf(live) != service && serviceOf(live) != types.NamespacedName{} && x.wantedPolicies(x.services[serviceOf(live)])[name] != nil:
		p.problems = append(p.problems, problem{reasonNameTaken, name.String(),
			fmt.Sprintf("NetworkPolicy %s belongs to Service %s, which needs one of the same name: rename one of the two Services", name, serviceOf(live))})
		x.policies.addWaiting(name, service)
		return
	case isUpToDate(live, want):
		return
	default:
		p.adopt.Insert(name)
	}
	p.apply = append(p.apply, want)
}

// wantedPolicies returns the policies that a Service asks for, or none without a Service or if its
// namespace is not handled.
func (x *index) wantedPolicies(t *serviceTraffic) policySet {
	if t == nil || t.hasUnknownPods || !x.isManagedNamespace(t.key.Namespace) {
		return nil
	}
	return t.policies(func(r portRule) []string { return x.clientNamespaces(t, r) }, x.exposuresOf(t))
}

// clientNamespaces returns the namespaces with pods that have the label of a rule, in order.
func (x *index) clientNamespaces(t *serviceTraffic, r portRule) []string {
	var out []string
	x.comparisons++
	if x.clientCounts[r.localLabel][t.key.Namespace] != nil {
		out = append(out, t.key.Namespace)
	}
	if len(t.namespaces) == 0 {
		return out
	}
	for name := range x.clientCounts[r.foreignLabel] {
		x.comparisons++
		if ns := x.namespaces[name]; name != t.key.Namespace && ns != nil && t.isClientNamespace(ns.labels) {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// isManagedNamespace reports whether Services of a namespace get policies.
func (x *index) isManagedNamespace(name string) bool {
	if len(x.namespaceSelectors) == 0 {
		return true
	}
	var set labels.Set
	if ns := x.namespaces[name]; ns != nil {
		set = ns.labels
	}
	return slices.ContainsFunc(x.namespaceSelectors, func(s labels.Selector) bool { return s.Matches(set) })
}

func (x *index) isTerminating(name string) bool {
	ns := x.namespaces[name]
	return ns != nil && ns.terminating
}

// insertIntoSet and remove maintain a map of sets without empty ones.
func insertIntoSet[K, V comparable](m map[K]sets.Set[V], key K, value V) {
	if m[key] == nil {
		m[key] = sets.Set[V]{}
	}
	m[key].Insert(value)
}

func removeFromSet[K, V comparable](m map[K]sets.Set[V], key K, value V) {
	if m[key].Delete(value); len(m[key]) == 0 {
		delete(m, key)
	}
}

// sortedNames returns names in order.
func sortedNames(keys iter.Seq[types.NamespacedName]) []types.NamespacedName {
	return slices.SortedFunc(keys, func(a, b types.NamespacedName) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
}
