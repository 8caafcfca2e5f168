package schemas

import (
	"net/netip"
	"strings"
)

// seedNetwork is a range of a seed; it has no prefix where it is not set, or no range at all.
type seedNetwork struct {
	tree
	prefix netip.Prefix
}

func readNetwork(field tree) seedNetwork {
	prefix, err := netip.ParsePrefix(field.text())
	if err != nil {
		return seedNetwork{tree: field}
	}
	return seedNetwork{tree: field, prefix: prefix.Masked()}
}

// ReservedNetworks gives the ranges of Gardener itself: for the connection of nodes to their API
// server, and for the VPN between a seed and its Shoots. Source: pkg/apis/core/v1beta1/constants.
func ReservedNetworks() []netip.Prefix {
	prefixes := []netip.Prefix{netip.MustParsePrefix("fd8f:6d53:b97a:1::/96")}
	for _, first := range []byte{240, 241, 242, 243, 244} {
		prefixes = append(prefixes, netip.PrefixFrom(netip.AddrFrom4([4]byte{first}), 8))
	}
	return prefixes
}

// widestServices is the number of bits that a range of services has at least, so that it can be
// mapped into a reserved one of IPv4.
const widestServices = 8

// seedNetworkRanges checks the ranges of a seed, and those that it gives to Shoots by default. As
// upstream does, it compares them only if each is right by itself.
func seedNetworkRanges(in ruleInput) []finding {
	r, networks := &report{}, tree{value: in.object}.at("spec", "networks")
	families := networks.at("ipFamilies").texts()
	seen := map[string]bool{}
	for _, family := range networks.at("ipFamilies").items() {
		if seen[family.text()] {
			r.add(family, TypeDuplicate, "the family %q is listed already", family.text())
		}
		seen[family.text()] = true
		if family.text() != "IPv4" && family.text() != "IPv6" {
			return r.findings // the structure says why
		}
	}
	seed := []seedNetwork{readNetwork(networks.at("pods")), readNetwork(networks.at("services")), readNetwork(networks.at("nodes"))}
	shoots := []seedNetwork{readNetwork(networks.at("shootDefaults", "pods")), readNetwork(networks.at("shootDefaults", "services"))}
	if len(r.findings) > 0 || !r.seedNetworksAlone(append(append([]seedNetwork{}, seed...), shoots...), families) {
		return r.findings
	}
	r.disjoint(seed)
	r.disjoint(shoots)
	r.apart(seed, shoots)
	for _, network := range append(seed, shoots...) {
		for _, reserved := range ReservedNetworks() {
			if network.prefix.IsValid() && network.prefix.Overlaps(reserved) {
				r.add(network.tree, TypeInvalid, "%s overlaps with %s, which Gardener uses itself", network.prefix, reserved)
			}
		}
	}
	return r.findings
}

// seedNetworksAlone checks each range by itself, and tells whether all are right.
func (r *report) seedNetworksAlone(networks []seedNetwork, families []string) bool {
	primary := "IPv4"
	if len(families) > 0 {
		primary = families[0]
	}
	for _, network := range networks {
		if !network.prefix.IsValid() {
			if network.set() {
				return false // the structure says why
			}
			continue
		}
		family := "IPv6"
		if network.prefix.Addr().Is4() {
			family = "IPv4"
		}
		if len(families) < 2 && family != primary {
			r.add(network.tree, TypeInvalid, "%s is a range of %s, but spec.networks.ipFamilies says %s", network.prefix, family, primary)
		}
		if network.path == "spec.networks.services" && family == "IPv4" && network.prefix.Bits() < widestServices {
			r.add(network.tree, TypeInvalid, "%s is too wide: services have at most a /%d", network.prefix, widestServices)
		}
	}
	return len(r.findings) == 0
}

// disjoint compares ranges with one another, and reports the later one.
func (r *report) disjoint(networks []seedNetwork) {
	for i := range networks {
		r.apart(networks[:i], networks[i:i+1])
	}
}

// apart compares each of the later ranges with those before; of Shoots' defaults in IPv4 many seeds
// have the same as their own, which the VPN maps apart.
func (r *report) apart(before, later []seedNetwork) {
	for _, network := range later {
		for _, other := range before {
			ofShoots := strings.Contains(network.path, "shootDefaults") && !strings.Contains(other.path, "shootDefaults")
			if !network.prefix.IsValid() || !other.prefix.IsValid() || !network.prefix.Overlaps(other.prefix) || ofShoots && network.prefix.Addr().Is4() {
				continue
			}
			r.add(network.tree, TypeInvalid, "%s overlaps with %s of %s", network.prefix, other.prefix, other.path)
		}
	}
}
