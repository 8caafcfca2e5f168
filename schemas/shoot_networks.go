// SPDX-License-Identifier: Apache-2.0

package schemas

import "net/netip"

// checkShootRanges checks that ranges are written by their first address, and have the IP family of
// the Shoot.
func checkShootRanges(r *findingCollector, s shoot) {
	for _, name := range []string{"nodes", "pods", "services"} {
		field := s.spec.lookup("networking", name)
		r.requireCanonicalRange(field)
		prefix, err := netip.ParsePrefix(field.text())
		if err != nil || len(s.ipFamilies) > 1 || s.ipFamilies[0] != "IPv4" && s.ipFamilies[0] != "IPv6" {
			continue
		}
		if prefix.Addr().Is4() != (s.ipFamilies[0] == "IPv4") {
			r.add(field, TypeInvalid, "the range %s is not of the family %s in spec.networking.ipFamilies", field.text(), s.ipFamilies[0])
		}
	}
	for _, name := range []string{"nodes", "pods", "services", "egressCIDRs"} {
		for _, item := range s.lookup("status", "networking", name).items() {
			r.requireCanonicalRange(item)
		}
	}
	if nginx := s.spec.lookup("addons", "nginxIngress"); nginx.lookup("enabled").isTrue() {
		for _, item := range nginx.lookup("loadBalancerSourceRanges").items() {
			if _, err := netip.ParsePrefix(item.text()); err != nil {
				r.add(item, TypeInvalid, "%q is not a range of addresses, such as 10.0.0.0/8", item.text())
			}
		}
	}
}

// requireCanonicalRange checks that a range is written by its first address.
func (r *findingCollector) requireCanonicalRange(field fieldValue) {
	if prefix, err := netip.ParsePrefix(field.text()); err == nil && prefix != prefix.Masked() {
		r.add(field, TypeInvalid, "%s is an address inside of its range; write %s", field.text(), prefix.Masked())
	}
}

func checkShootFamilies(r *findingCollector, s shoot) {
	families := s.spec.lookup("networking", "ipFamilies").items()
	for i, family := range families {
		for _, earlier := range families[:i] {
			if family.text() == earlier.text() {
				r.add(family, TypeDuplicate, "the family %q is already listed as %s", family.text(), earlier.path)
				break
			}
		}
	}
}

func checkShootSeedSelector(r *findingCollector, s shoot) {
	r.checkLabelSelector(s.spec.lookup("seedSelector"))
}
