// SPDX-License-Identifier: Apache-2.0

package namespacepolicies

import (
	"net/netip"
	"slices"

	networkingv1 "k8s.io/api/networking/v1"
)

// privateNetworks returns RFC 1918, carrier-grade NAT (RFC 6598), IPv6 link-local and unique local
// addresses.
func privateNetworks() []netip.Prefix {
	return parsePrefixes("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "fe80::/10", "fc00::/7")
}

// allNetworks returns all addresses of both families.
func allNetworks() []netip.Prefix { return parsePrefixes("0.0.0.0/0", "::/0") }

func parsePrefixes(texts ...string) []netip.Prefix {
	out := make([]netip.Prefix, len(texts))
	for i, text := range texts {
		out[i] = netip.MustParsePrefix(text)
	}
	return out
}

// peersOutside returns peers per family for networks without the excepted ranges. It omits networks
// that are completely excepted: an exception must be smaller than its network.
func peersOutside(networks, excepted []netip.Prefix) (v4, v6 []networkingv1.NetworkPolicyPeer) {
	for _, n := range networks {
		var parts []netip.Prefix
		whole := false
		for _, e := range excepted {
			switch {
			case isSupernetOf(e, n):
				whole = true
			case isSupernetOf(n, e):
				parts = append(parts, e)
			}
		}
		if whole {
			continue
		}
		block := &networkingv1.IPBlock{CIDR: n.String(), Except: prefixTexts(withoutSubnets(parts))}
		if n.Addr().Is4() {
			v4 = append(v4, networkingv1.NetworkPolicyPeer{IPBlock: block})
		} else {
			v6 = append(v6, networkingv1.NetworkPolicyPeer{IPBlock: block})
		}
	}
	return v4, v6
}

// isSupernetOf reports whether a contains all of b.
func isSupernetOf(a, b netip.Prefix) bool {
	return a.Addr().Is4() == b.Addr().Is4() && a.Bits() <= b.Bits() && a.Contains(b.Addr())
}

// withoutSubnets omits ranges that another one contains.
func withoutSubnets(ranges []netip.Prefix) []netip.Prefix {
	var out []netip.Prefix
	for i, r := range ranges {
		covered := slices.ContainsFunc(ranges, func(o netip.Prefix) bool { return o != r && isSupernetOf(o, r) })
		if !covered && slices.Index(ranges, r) == i {
			out = append(out, r)
		}
	}
	return out
}

func prefixTexts(ranges []netip.Prefix) []string {
	var out []string
	for _, r := range ranges {
		out = append(out, r.String())
	}
	return out
}
