// SPDX-License-Identifier: Apache-2.0

package schemas

import (
	"net/netip"
	"strings"
)

// seedNetwork is a range of a seed, without a prefix if the field is unset or not a range.
type seedNetwork struct {
	fieldValue
	prefix netip.Prefix
}

func readSeedNetwork(field fieldValue) seedNetwork {
	prefix, err := netip.ParsePrefix(field.text())
	if err != nil {
		return seedNetwork{fieldValue: field}
	}
	return seedNetwork{fieldValue: field, prefix: prefix.Masked()}
}

// ReservedNetworks returns the ranges of Gardener itself. Nodes use them to connect to their API
// server, and the VPN between a seed and its Shoots. Source: pkg/apis/core/v1beta1/constants.
func ReservedNetworks() []netip.Prefix {
	prefixes := []netip.Prefix{netip.MustParsePrefix("fd8f:6d53:b97a:1::/96")}
	for _, first := range []byte{240, 241, 242, 243, 244} {
		prefixes = append(prefixes, netip.PrefixFrom(netip.AddrFrom4([4]byte{first}), 8))
	}
	return prefixes
}

// minServicePrefixBits is the shortest prefix, in bits, of a range of services that can be mapped
// into a reserved IPv4 range.
const minServicePrefixBits = 8

// checkSeedNetworkRanges checks the ranges of a seed and its defaults for Shoots. Like upstream, it
// compares them only if each one is valid.
func checkSeedNetworkRanges(in ruleInput) []finding {
	r, networks := &findingCollector{}, fieldValue{value: in.object}.lookup("spec", "networks")
	families := networks.lookup("ipFamilies").texts()
	seen := map[string]bool{}
	for _, family := range networks.lookup("ipFamilies").items() {
		if seen[family.text()] {
			r.add(family, TypeDuplicate, "the family %q is already listed", family.text())
		}
		seen[family.text()] = true
		if family.text() != "IPv4" && family.text() != "IPv6" {
			return r.findings // the structural check reports it
		}
	}
	seed := []seedNetwork{readSeedNetwork(networks.lookup("pods")), readSeedNetwork(networks.lookup("services")), readSeedNetwork(networks.lookup("nodes"))}
	shoots := []seedNetwork{readSeedNetwork(networks.lookup("shootDefaults", "pods")), readSeedNetwork(networks.lookup("shootDefaults", "services"))}
	if len(r.findings) > 0 || !r.checkSingleSeedNetworks(append(append([]seedNetwork{}, seed...), shoots...), families) {
		return r.findings
	}
	r.requireDisjoint(seed)
	r.requireDisjoint(shoots)
	r.requireNoOverlap(seed, shoots)
	for _, network := range append(seed, shoots...) {
		for _, reserved := range ReservedNetworks() {
			if network.prefix.IsValid() && network.prefix.Overlaps(reserved) {
				r.add(network.fieldValue, TypeInvalid, "%s overlaps with %s, which Gardener uses itself", network.prefix, reserved)
			}
		}
	}
	return r.findings
}

// checkSingleSeedNetworks checks each range separately, and reports whether all are valid.
func (r *findingCollector) checkSingleSeedNetworks(networks []seedNetwork, families []string) bool {
	primary := "IPv4"
	if len(families) > 0 {
		primary = families[0]
	}
	for _, network := range networks {
		if !network.prefix.IsValid() {
			if network.isSet() {
				return false // the structural check reports it
			}
			continue
		}
		family := "IPv6"
		if network.prefix.Addr().Is4() {
			family = "IPv4"
		}
		if len(families) < 2 && family != primary {
			r.add(network.fieldValue, TypeInvalid, "%s is a range of %s, but spec.networks.ipFamilies says %s", network.prefix, family, primary)
		}
		if network.path == "spec.networks.services" && family == "IPv4" && network.prefix.Bits() < minServicePrefixBits {
			r.add(network.fieldValue, TypeInvalid, "%s is too wide: services have at most a /%d", network.prefix, minServicePrefixBits)
		}
	}
	return len(r.findings) == 0
}

// requireDisjoint compares ranges with one another, and reports the later one.
func (r *findingCollector) requireDisjoint(networks []seedNetwork) {
	for i := range networks {
		r.requireNoOverlap(networks[:i], networks[i:i+1])
	}
}

// requireNoOverlap compares each later range with those before. It allows IPv4 defaults of Shoots
// that overlap with the seed: many seeds have them, and the VPN maps them apart.
func (r *findingCollector) requireNoOverlap(before, later []seedNetwork) {
	for _, network := range later {
		for _, other := range before {
			ofShoots := strings.Contains(network.path, "shootDefaults") && !strings.Contains(other.path, "shootDefaults")
			if !network.prefix.IsValid() || !other.prefix.IsValid() || !network.prefix.Overlaps(other.prefix) || ofShoots && network.prefix.Addr().Is4() {
				continue
			}
			r.add(network.fieldValue, TypeInvalid, "%s overlaps with %s of %s", network.prefix, other.prefix, other.path)
		}
	}
}
