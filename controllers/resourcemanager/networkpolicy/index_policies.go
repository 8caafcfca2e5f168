package networkpolicy

import (
	"encoding/json"
	"hash/fnv"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/types"
)

// policies are the live policies and the wanted ones.
type policies struct {
	live map[types.NamespacedName]*networkingv1.NetworkPolicy
	// Policies of a Service, according to their labels.
	of map[types.NamespacedName]keySet
	// expected are digests of the policies that a Service wanted at its last reconciliation: our
	// own writes are not changes.
	expected map[types.NamespacedName]map[types.NamespacedName]uint64
	// waiting are the Services that want a policy whose name is taken.
	waiting map[types.NamespacedName]keySet
}

func newPolicies() policies {
	return policies{
		live: map[types.NamespacedName]*networkingv1.NetworkPolicy{}, of: map[types.NamespacedName]keySet{},
		expected: map[types.NamespacedName]map[types.NamespacedName]uint64{}, waiting: map[types.NamespacedName]keySet{},
	}
}

// setPolicy records a policy; nil if it was deleted.
func (x *index) setPolicy(name types.NamespacedName, p *networkingv1.NetworkPolicy) effect {
	x.mu.Lock()
	defer x.mu.Unlock()
	before, out := x.policies.live[name], effect{}
	var from, to types.NamespacedName
	if before != nil {
		from = serviceOf(before)
		remove(x.policies.of, from, name)
	}
	if delete(x.policies.live, name); p != nil {
		to = serviceOf(p)
		x.policies.live[name] = p
		insert(x.policies.of, to, name)
	}
	affected := keySet{}
	for key := range x.policies.waiting[name] {
		affected.Insert(key)
	}
	delete(x.policies.waiting, name)
	for _, key := range []types.NamespacedName{from, to} {
		if key == (types.NamespacedName{}) {
			continue
		}
		switch want, ok := x.policies.expected[key][name]; {
		case ok && to == key && digest(p) == want, !ok && to != key:
		case ok && before != nil && from == key && digest(before) == want:
			// The policy was as wanted, and somebody changed or deleted it.
			out.fight = &name
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
		remove(x.policies.of, serviceOf(live), name)
	}
}

// expect records the policies that a Service wants.
func (s *policies) expect(service types.NamespacedName, wanted policySet) {
	if len(wanted) == 0 {
		delete(s.expected, service)
		return
	}
	digests := make(map[types.NamespacedName]uint64, len(wanted))
	for name, p := range wanted {
		digests[name] = digest(p)
	}
	s.expected[service] = digests
}

// wait records that a Service wants a policy whose name is taken.
func (s *policies) wait(name, service types.NamespacedName) { insert(s.waiting, name, service) }

// digest covers what isAsWanted compares.
func digest(p *networkingv1.NetworkPolicy) uint64 {
	h := fnv.New64a()
	// A policy can always be encoded; an empty digest would only cost a reconciliation.
	_ = json.NewEncoder(h).Encode([]any{p.Spec, serviceOf(p), p.Annotations[annotationDescription] != ""})
	return h.Sum64()
}
