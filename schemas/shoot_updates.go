package schemas

import (
	"math/bits"
	"reflect"
	"slices"
	"strings"
)

const defaultScheduler = "default-scheduler"

// equal compares two values of an object.
func equal(a, b any) bool { return reflect.DeepEqual(a, b) }

// same checks that a value did not change.
func (r *report) same(now, before tree) {
	if !equal(now.value, before.value) {
		r.add(now, TypeInvalid, "cannot be changed; it was %v", words(before))
	}
}

func words(t tree) any {
	switch t.value.(type) {
	case nil:
		return "not set"
	case map[string]any, []any:
		return "another one"
	}
	return t.value
}

// shootUpdate checks fields that cannot be changed.
func shootUpdate(r *report, s shoot) {
	if !s.old.set() {
		return
	}
	old := s.old.at("spec")
	if s.ends() {
		if !equal(s.spec.value, old.value) {
			r.add(s.spec, TypeForbidden, "cannot be changed any more, because the Shoot is being deleted")
		}
		return
	}
	if seed, was := s.spec.at("seedName"), old.at("seedName"); was.text() != "" && seed.text() != was.text() {
		r.add(seed, TypeForbidden, "cannot be changed in the Shoot, it was %s: only the subresource shoots/binding moves a control plane to another seed", was.text())
	}
	r.same(s.spec.at("region"), old.at("region"))
	r.same(s.spec.at("exposureClassName"), old.at("exposureClassName"))
	r.bindingUpdate(s, old)
	r.dnsUpdate(s, old)
	r.maskUpdate(s, old)
	if s.becomesWorkerless() {
		r.add(s.spec.at("provider", "workers"), TypeForbidden, "a Shoot without workers cannot get any, and one with workers needs one pool at least")
		return
	}
	r.same(s.spec.at("provider", "type"), old.at("provider", "type"))
	r.networkUpdate(s, old)
	scheduler, before := s.spec.at("schedulerName"), old.at("schedulerName")
	if name := orDefault(scheduler.text(), defaultScheduler); name != orDefault(before.text(), defaultScheduler) {
		r.add(scheduler, TypeInvalid, "cannot be changed; it was %s", orDefault(before.text(), defaultScheduler))
	}
	for _, field := range []string{"uid", "technicalID", "clusterIdentity"} {
		if before := s.old.at("status", field); before.set() && s.at("status").set() {
			r.same(s.at("status", field), before)
		}
	}
}

func orDefault(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}

func (r *report) bindingUpdate(s shoot, old tree) {
	credentials, secret := s.spec.at("credentialsBindingName"), s.spec.at("secretBindingName")
	if old.at("credentialsBindingName").set() && credentials.text() == "" {
		r.add(credentials, TypeForbidden, "cannot be removed; it was %q", old.at("credentialsBindingName").text())
	}
	if moved := old.at("secretBindingName").set() && !secret.set() && credentials.text() != ""; !moved {
		r.same(secret, old.at("secretBindingName"))
	}
}

func (r *report) dnsUpdate(s shoot, old tree) {
	now, before := s.spec.at("dns"), old.at("dns")
	if !before.set() {
		return
	}
	if !now.set() {
		r.add(now, TypeInvalid, "cannot be removed; the domain was %q", before.at("domain").text())
		return
	}
	if before.at("domain").set() {
		r.same(now.at("domain"), before.at("domain"))
	}
	primary, was := primaryProvider(now), primaryProvider(before)
	if !s.spec.at("seedName").set() || !was.set() {
		return
	}
	switch {
	case !primary.set():
		r.add(now.at("providers"), TypeForbidden, "the primary provider cannot be removed")
	case was.at("type").set() && primary.at("type").text() != was.at("type").text():
		r.add(now.at("providers"), TypeForbidden, "the type of the primary provider cannot be changed; it was %q", was.at("type").text())
	}
}

func primaryProvider(dns tree) tree {
	for _, provider := range dns.at("providers").items() {
		if provider.at("primary").is() {
			return provider
		}
	}
	return tree{}
}

// maskUpdate compares the sizes of the ranges of nodes. The API derives an unset size from the
// number of pods on a node.
func (r *report) maskUpdate(s shoot, old tree) {
	field, before := s.spec.at("kubernetes", "kubeControllerManager", "nodeCIDRMaskSize"), old.at("kubernetes", "kubeControllerManager", "nodeCIDRMaskSize")
	if !field.set() && !before.set() || len(s.workers) == 0 {
		return
	}
	value := func(mask, spec tree) int {
		if mask.set() || !slices.Contains(s.families, "IPv4") {
			return mask.count()
		}
		return defaultMask(spec)
	}
	if is, was := value(field, s.spec), value(before, old); is != was {
		r.add(field, TypeInvalid, "cannot be changed; it was %d", was)
	}
}

// defaultMask returns the prefix length of the range with twice as many addresses as a node may
// have pods.
func defaultMask(spec tree) int {
	pods := kubeletDefaultMaxPods
	if own := spec.at("kubernetes", "kubelet", "maxPods"); own.set() {
		pods = own.count()
	}
	for _, worker := range spec.at("provider", "workers").items() {
		pods = max(pods, worker.at("kubernetes", "kubelet", "maxPods").count())
	}
	if pods <= 0 {
		return 32
	}
	return 32 - bits.Len32(uint32(pods)*2-1)
}

func (r *report) networkUpdate(s shoot, old tree) {
	now, before := s.spec.at("networking"), old.at("networking")
	if !before.set() {
		return
	}
	if !now.set() {
		r.add(now, TypeForbidden, "cannot be removed")
		return
	}
	r.same(now.at("type"), before.at("type"))
	for _, name := range []string{"pods", "services"} {
		if before.at(name).set() {
			r.same(now.at(name), before.at(name))
		}
	}
	was := before.at("ipFamilies").texts()
	if len(was) == 0 {
		was = []string{"IPv4"}
	}
	dual := []string{"IPv4", "IPv6"}
	single := dual[:1]
	moved := slices.Equal(was, single) && slices.Equal(s.families, dual) || slices.Equal(was, dual) && slices.Equal(s.families, single)
	if !moved && !slices.Equal(was, s.families) {
		r.add(now.at("ipFamilies"), TypeForbidden, "cannot be changed from [%s]; only IPv4 and [IPv4, IPv6] can be changed into one another", strings.Join(was, ", "))
	}
}

// shootHighAvailabilityUpdate checks that a control plane does not lose its failure tolerance or
// its zones.
func shootHighAvailabilityUpdate(r *report, s shoot) {
	if !s.old.set() {
		return
	}
	path := []string{"controlPlane", "highAvailability", "failureTolerance", "type"}
	now, before := s.spec.at(path...), s.old.at("spec").at(path...)
	switch {
	case now.set() && !before.set() && s.hibernated():
		r.add(now, TypeForbidden, "a hibernated cluster cannot become highly available; wake it up first")
	case before.set() && s.spec.at("seedName").set():
		r.same(now, before)
	}
	zones, was := s.spec.at("controlPlane", "zones"), s.old.at("spec", "controlPlane", "zones").texts()
	list := zones.texts()
	if len(list) == 0 || sameSet(list, was) {
		return // zones may always be left to Gardener again
	}
	grown := len(was) == 1 && len(list) >= 3 && slices.Contains(list, was[0]) && now.text() == "zone" && before.text() != "zone"
	if !grown {
		r.add(zones, TypeForbidden, "can be set only with a new Shoot; later one zone can grow to three, together with the failure tolerance zone, or the zones can be removed")
	}
}
