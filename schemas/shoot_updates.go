// SPDX-License-Identifier: Apache-2.0

package schemas

import (
	"math/bits"
	"reflect"
	"slices"
	"strings"
)

const defaultScheduler = "default-scheduler"

// isEqual compares two values of an object.
func isEqual(a, b any) bool { return reflect.DeepEqual(a, b) }

// requireUnchanged checks that a value did not change.
func (r *findingCollector) requireUnchanged(now, before fieldValue) {
	if !isEqual(now.value, before.value) {
		r.add(now, TypeInvalid, "cannot be changed; it was %v", displayValue(before))
	}
}

func displayValue(t fieldValue) any {
	switch t.value.(type) {
	case nil:
		return "not set"
	case map[string]any, []any:
		return "another one"
	}
	return t.value
}

// checkShootUpdate checks fields that cannot be changed.
func checkShootUpdate(r *findingCollector, s shoot) {
	if !s.old.isSet() {
		return
	}
	old := s.old.lookup("spec")
	if s.isBeingDeleted() {
		if !isEqual(s.spec.value, old.value) {
			r.add(s.spec, TypeForbidden, "cannot be changed, because the Shoot is being deleted")
		}
		return
	}
	if seed, was := s.spec.lookup("seedName"), old.lookup("seedName"); was.text() != "" && seed.text() != was.text() {
		r.add(seed, TypeForbidden, "cannot be changed in the Shoot, it was %s: only the subresource shoots/binding moves a control plane to another seed", was.text())
	}
	r.requireUnchanged(s.spec.lookup("region"), old.lookup("region"))
	r.requireUnchanged(s.spec.lookup("exposureClassName"), old.lookup("exposureClassName"))
	r.checkBindingUpdate(s, old)
	r.checkDNSUpdate(s, old)
	r.checkNodeMaskUpdate(s, old)
	if s.hasWorkerlessChanged() {
		r.add(s.spec.lookup("provider", "workers"), TypeForbidden, "a Shoot without workers cannot get any, and a Shoot with workers needs at least one pool")
		return
	}
	r.requireUnchanged(s.spec.lookup("provider", "type"), old.lookup("provider", "type"))
	r.checkNetworkUpdate(s, old)
	scheduler, before := s.spec.lookup("schedulerName"), old.lookup("schedulerName")
	if name := orDefault(scheduler.text(), defaultScheduler); name != orDefault(before.text(), defaultScheduler) {
		r.add(scheduler, TypeInvalid, "cannot be changed; it was %s", orDefault(before.text(), defaultScheduler))
	}
	for _, field := range []string{"uid", "technicalID", "clusterIdentity"} {
		if before := s.old.lookup("status", field); before.isSet() && s.lookup("status").isSet() {
			r.requireUnchanged(s.lookup("status", field), before)
		}
	}
}

func orDefault(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}

func (r *findingCollector) checkBindingUpdate(s shoot, old fieldValue) {
	credentials, secret := s.spec.lookup("credentialsBindingName"), s.spec.lookup("secretBindingName")
	if old.lookup("credentialsBindingName").isSet() && credentials.text() == "" {
		r.add(credentials, TypeForbidden, "cannot be removed; it was %q", old.lookup("credentialsBindingName").text())
	}
	if moved := old.lookup("secretBindingName").isSet() && !secret.isSet() && credentials.text() != ""; !moved {
		r.requireUnchanged(secret, old.lookup("secretBindingName"))
	}
}

func (r *findingCollector) checkDNSUpdate(s shoot, old fieldValue) {
	now, before := s.spec.lookup("dns"), old.lookup("dns")
	if !before.isSet() {
		return
	}
	if !now.isSet() {
		r.add(now, TypeInvalid, "cannot be removed; the domain was %q", before.lookup("domain").text())
		return
	}
	if before.lookup("domain").isSet() {
		r.requireUnchanged(now.lookup("domain"), before.lookup("domain"))
	}
	primary, was := primaryDNSProvider(now), primaryDNSProvider(before)
	if !s.spec.lookup("seedName").isSet() || !was.isSet() {
		return
	}
	switch {
	case !primary.isSet():
		r.add(now.lookup("providers"), TypeForbidden, "the primary provider cannot be removed")
	case was.lookup("type").isSet() && primary.lookup("type").text() != was.lookup("type").text():
		r.add(now.lookup("providers"), TypeForbidden, "the type of the primary provider cannot be changed; it was %q", was.lookup("type").text())
	}
}

func primaryDNSProvider(dns fieldValue) fieldValue {
	for _, provider := range dns.lookup("providers").items() {
		if provider.lookup("primary").isTrue() {
			return provider
		}
	}
	return fieldValue{}
}

// checkNodeMaskUpdate compares the sizes of the ranges of nodes. The API derives an unset size from
// the number of pods on a node.
func (r *findingCollector) checkNodeMaskUpdate(s shoot, old fieldValue) {
	field, before := s.spec.lookup("kubernetes", "kubeControllerManager", "nodeCIDRMaskSize"), old.lookup("kubernetes", "kubeControllerManager", "nodeCIDRMaskSize")
	if !field.isSet() && !before.isSet() || len(s.workers) == 0 {
		return
	}
	value := func(mask, spec fieldValue) int {
		if mask.isSet() || !slices.Contains(s.ipFamilies, "IPv4") {
			return mask.integer()
		}
		return nodeMaskForPods(spec)
	}
	if is, was := value(field, s.spec), value(before, old); is != was {
		r.add(field, TypeInvalid, "cannot be changed; it was %d", was)
	}
}

// nodeMaskForPods returns the prefix length of the range with twice as many addresses as a node may
// have pods.
func nodeMaskForPods(spec fieldValue) int {
	pods := kubeletDefaultMaxPods
	if own := spec.lookup("kubernetes", "kubelet", "maxPods"); own.isSet() {
		pods = own.integer()
	}
	for _, worker := range spec.lookup("provider", "workers").items() {
		pods = max(pods, worker.lookup("kubernetes", "kubelet", "maxPods").integer())
	}
	if pods <= 0 {
		return 32
	}
	return 32 - bits.Len32(uint32(pods)*2-1)
}

func (r *findingCollector) checkNetworkUpdate(s shoot, old fieldValue) {
	now, before := s.spec.lookup("networking"), old.lookup("networking")
	if !before.isSet() {
		return
	}
	if !now.isSet() {
		r.add(now, TypeForbidden, "cannot be removed")
		return
	}
	r.requireUnchanged(now.lookup("type"), before.lookup("type"))
	for _, name := range []string{"pods", "services"} {
		if before.lookup(name).isSet() {
			r.requireUnchanged(now.lookup(name), before.lookup(name))
		}
	}
	was := before.lookup("ipFamilies").texts()
	if len(was) == 0 {
		was = []string{"IPv4"}
	}
	dual := []string{"IPv4", "IPv6"}
	single := dual[:1]
	moved := slices.Equal(was, single) && slices.Equal(s.ipFamilies, dual) || slices.Equal(was, dual) && slices.Equal(s.ipFamilies, single)
	if !moved && !slices.Equal(was, s.ipFamilies) {
		r.add(now.lookup("ipFamilies"), TypeForbidden, "cannot be changed from [%s]; only IPv4 and [IPv4, IPv6] can be changed into one another", strings.Join(was, ", "))
	}
}

// checkShootHighAvailabilityUpdate checks that a control plane does not lose its failure tolerance
// or its zones.
func checkShootHighAvailabilityUpdate(r *findingCollector, s shoot) {
	if !s.old.isSet() {
		return
	}
	path := []string{"controlPlane", "highAvailability", "failureTolerance", "type"}
	now, before := s.spec.lookup(path...), s.old.lookup("spec").lookup(path...)
	switch {
	case now.isSet() && !before.isSet() && s.isHibernated():
		r.add(now, TypeForbidden, "a hibernated cluster cannot become highly available; wake it up first")
	case before.isSet() && s.spec.lookup("seedName").isSet():
		r.requireUnchanged(now, before)
	}
	zones, was := s.spec.lookup("controlPlane", "zones"), s.old.lookup("spec", "controlPlane", "zones").texts()
	list := zones.texts()
	if len(list) == 0 || isSameSet(list, was) {
		return // zones may always be left to Gardener again
	}
	grown := len(was) == 1 && len(list) >= 3 && slices.Contains(list, was[0]) && now.text() == "zone" && before.text() != "zone"
	if !grown {
		r.add(zones, TypeForbidden, "can be set only in a new Shoot; later, one zone can grow to three with the failure tolerance zone, or all can be removed")
	}
}
