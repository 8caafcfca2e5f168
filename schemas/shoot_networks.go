package schemas

import "net/netip"

// shootRanges checks that ranges are written by their first address, and have the IP family of the
// Shoot.
func shootRanges(r *report, s shoot) {
	for _, name := range []string{"nodes", "pods", "services"} {
		field := s.spec.at("networking", name)
		r.canonical(field)
		prefix, err := netip.ParsePrefix(field.text())
		if err != nil || len(s.families) > 1 || s.families[0] != "IPv4" && s.families[0] != "IPv6" {
			continue
		}
		if prefix.Addr().Is4() != (s.families[0] == "IPv4") {
			r.add(field, TypeInvalid, "the range %s is not of the family %s, which is the one of spec.networking.ipFamilies", field.text(), s.families[0])
		}
	}
	for _, name := range []string{"nodes", "pods", "services", "egressCIDRs"} {
		for _, item := range s.at("status", "networking", name).items() {
			r.canonical(item)
		}
	}
	if nginx := s.spec.at("addons", "nginxIngress"); nginx.at("enabled").is() {
		for _, item := range nginx.at("loadBalancerSourceRanges").items() {
			if _, err := netip.ParsePrefix(item.text()); err != nil {
				r.add(item, TypeInvalid, "%q is not a range of addresses, such as 10.0.0.0/8", item.text())
			}
		}
	}
}

// canonical checks that a range is written by its first address.
func (r *report) canonical(field tree) {
	if prefix, err := netip.ParsePrefix(field.text()); err == nil && prefix != prefix.Masked() {
		r.add(field, TypeInvalid, "%s is an address inside of its range; write %s", field.text(), prefix.Masked())
	}
}

func shootFamilies(r *report, s shoot) {
	families := s.spec.at("networking", "ipFamilies").items()
	for i, family := range families {
		for _, earlier := range families[:i] {
			if family.text() == earlier.text() {
				r.add(family, TypeDuplicate, "the family %q is listed already as %s", family.text(), earlier.path)
				break
			}
		}
	}
}

func shootSeedSelector(r *report, s shoot) { r.labelSelector(s.spec.at("seedSelector")) }
