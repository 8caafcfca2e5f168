// SPDX-License-Identifier: Apache-2.0

package networkpolicy

import (
	"encoding/json"
	"hash/fnv"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/types"
)

// policyIndex has the live policies and the wanted ones.
type policyIndex struct {
	live map[types.NamespacedName]*networkingv1.NetworkPolicy
	// byService has the policies of a Service, according to their labels.
	byService map[types.NamespacedName]nameSet
	// wantedDigests are digests of the policies that a Service wanted at its last reconciliation:
	// our own writes are not changes.
	wantedDigests map[types.NamespacedName]map[types.NamespacedName]uint64
	// waitingServices are the Services that want a policy whose name is taken.
	waitingServices map[types.NamespacedName]nameSet
}

func newPolicyIndex() policyIndex {
	return policyIndex{
		live: map[types.NamespacedName]*networkingv1.NetworkPolicy{}, byService: map[types.NamespacedName]nameSet{},
		wantedDigests: map[types.NamespacedName]map[types.NamespacedName]uint64{}, waitingServices: map[types.NamespacedName]nameSet{},
	}
}

// setPolicy records a policy; the result is nil if it was deleted.
func (x *index) setPolicy(name types.NamespacedName, p *networkingv1.NetworkPolicy) indexEffect {
	x.mu.Lock()
	defer x.mu.Unlock()
	before, out := x.policies.live[name], indexEffect{}
	var from, to types.NamespacedName
	if before != nil {
		from = serviceOf(before)
		removeFromSet(x.policies.byService, from, name)
	}
	if delete(x.policies.live, name); p != nil {
		to = serviceOf(p)
		x.policies.live[name] = p
		insertIntoSet(x.policies.byService, to, name)
	}
	affected := nameSet{}
	for key := range x.policies.waitingServices[name] {
		affected.Insert(key)
	}
	delete(x.policies.waitingServices, name)
	for _, key := range []types.NamespacedName{from, to} {
		if key == (types.NamespacedName{}) {
			continue
		}
		switch want, ok := x.policies.wantedDigests[key][name]; {
		case ok && to == key && policyDigest(p) == want, !ok && to != key:
		case ok && before != nil && from == key && policyDigest(before) == want:
			// The policy was as wanted, and someone changed or deleted it.
			out.conflict = &name
			affected.Insert(key)
		default:
			affected.Insert(key)
		}
	}
	out.services = affected.UnsortedList()
	return out
}

// forgetPolicy records a deletion before the watch does: reconciling the Service meanwhile would
// delete the policy twice. A new policy of the same name has another UID and stays.
func (x *index) forgetPolicy(p *networkingv1.NetworkPolicy) {
	x.mu.Lock()
	defer x.mu.Unlock()
	name := types.NamespacedName{Namespace: p.Namespace, Name: p.Name}
	if live := x.policies.live[name]; live != nil && live.UID == p.UID {
		delete(x.policies.live, name)
		removeFromSet(x.policies.byService, serviceOf(live), name)
	}
}

// setWanted records the policies that a Service wants.
func (s *policyIndex) setWanted(service types.NamespacedName, wanted policySet) {
	if len(wanted) == 0 {
		delete(s.wantedDigests, service)
		return
	}
	digests := make(map[types.NamespacedName]uint64, len(wanted))
	for name, p := range wanted {
		digests[name] = policyDigest(p)
	}
	s.wantedDigests[service] = digests
}

// addWaiting records that a Service wants a policy whose name is taken.
func (s *policyIndex) addWaiting(name, service types.NamespacedName) {
	insertIntoSet(s.waitingServices, name, service)
}

// policyDigest covers what isUpToDate compares.
func policyDigest(p *networkingv1.NetworkPolicy) uint64 {
	h := fnv.New64a()
	// A policy can always be encoded; an empty digest would only cost a reconciliation.
	_ = json.NewEncoder(h).Encode([]any{p.Spec, serviceOf(p), p.Annotations[annotationDescription] != ""})
	return h.Sum64()
}
