package schemas

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// This file has the warnings about implausible networks; gorules_plausible.go lists them.

// zonedInfrastructures lists the groups of configurations that list a subnet for each zone.
var zonedInfrastructures = []string{"alicloud.provider.extensions.gardener.cloud", "aws.provider.extensions.gardener.cloud"}

func infrastructureNetworks(in ruleInput) []finding {
	r := &report{}
	root := tree{value: in.object}
	config := root.at("spec", "provider", "infrastructureConfig")
	group, _, _ := strings.Cut(config.at("apiVersion").text(), "/")
	zones := config.at("networks", "zones").items()
	if !slices.Contains(zonedInfrastructures, group) || len(zones) == 0 {
		return nil
	}
	names := make([]string, len(zones))
	var subnets []network
	for i, zone := range zones {
		names[i] = zone.at("name").text()
		if first := slices.Index(names[:i], names[i]); first >= 0 {
			r.add(zone.at("name"), TypeDuplicate, "the zone %q is listed already as %s", names[i], zones[first].path)
		}
		for _, name := range []string{"internal", "public", "workers", "worker"} {
			if subnet, err := netip.ParsePrefix(zone.at(name).text()); err == nil {
				subnets = append(subnets, network{zone.at(name).path, subnet.Masked()})
			}
		}
	}
	used := map[string]bool{}
	for _, zone := range each(root, "spec.provider.workers[].zones[]") {
		used[zone.text()] = true
		if !slices.Contains(names, zone.text()) {
			r.add(zone, TypeInvalid, "the infrastructure has no subnet for the zone %q: add it to %s", zone.text(), config.at("networks", "zones").path)
		}
	}
	for _, zone := range zones {
		if name := zone.at("name"); !used[name.text()] && len(used) > 0 {
			r.add(name, TypeInvalid, "no pool of workers has machines in the zone %q", name.text())
		}
	}
	for i, subnet := range subnets {
		r.findings = append(r.findings, overlaps(subnets[:i], []network{subnet})...)
	}
	if whole, err := netip.ParsePrefix(config.at("networks", "vpc", "cidr").text()); err == nil {
		for _, subnet := range subnets {
			if !whole.Contains(subnet.prefix.Addr()) || subnet.prefix.Bits() < whole.Bits() {
				r.findings = append(r.findings, finding{path: subnet.path, typ: TypeInvalid,
					message: fmt.Sprintf("the range %s is not within %s of %s", subnet.prefix, whole.Masked(), config.at("networks", "vpc", "cidr").path)})
			}
		}
	}
	return r.findings
}

func blockedNetworks(at string) func(ruleInput) []finding {
	return func(in ruleInput) []finding {
		fields := strings.Split(at, ".")
		own := []network{}
		for _, name := range []string{"nodes", "pods", "services"} {
			own = append(own, collectNetworks(in.object, at+"."+name, append(slices.Clone(fields), name)...)...)
		}
		return overlaps(own, collectNetworks(in.object, at+".blockCIDRs", append(slices.Clone(fields), "blockCIDRs")...))
	}
}

func shootDefaults(in ruleInput) []finding {
	var own, defaults []network
	for _, name := range []string{"nodes", "pods", "services"} {
		own = append(own, collectNetworks(in.object, "spec.networks."+name, "spec", "networks", name)...)
		defaults = append(defaults, collectNetworks(in.object, "spec.networks.shootDefaults."+name, "spec", "networks", "shootDefaults", name)...)
	}
	found := overlaps(own, defaults)
	for i, n := range defaults {
		found = append(found, overlaps(defaults[:i], []network{n})...)
	}
	return found
}

// defaultNodeMask is the size of the range of a node if nodeCIDRMaskSize is not set
// (https://kubernetes.io/docs/reference/command-line-tools-reference/kube-controller-manager).
const defaultNodeMask = 24

// podRanges checks that the pod network has a range for every node that the pools may have.
func podRanges(in ruleInput) []finding {
	r, spec := &report{}, tree{value: in.object}.at("spec")
	pods, err := netip.ParsePrefix(spec.at("networking", "pods").text())
	if err != nil || !pods.Addr().Is4() {
		return nil
	}
	mask := defaultNodeMask
	if given := spec.at("kubernetes", "kubeControllerManager", "nodeCIDRMaskSize"); given.set() {
		mask = given.count()
	}
	bits := mask - pods.Bits()
	if bits < 0 || bits > 20 {
		return nil // another rule reports too small ranges, and nobody has more nodes
	}
	nodes := 0
	for _, worker := range spec.at("provider", "workers").items() {
		nodes += max(0, worker.at("maximum").count())
	}
	if ranges := 1 << bits; nodes > ranges {
		r.add(spec.at("networking", "pods"), TypeInvalid, "%s has ranges for %d nodes (each a /%d, spec.kubernetes.kubeControllerManager.nodeCIDRMaskSize), and the pools may have %d", pods, ranges, mask, nodes)
	}
	return r.findings
}

func runtimeFamilies(in ruleInput) []finding {
	r, networking := &report{}, tree{value: in.object}.at("spec", "runtimeCluster", "networking")
	families := networking.at("ipFamilies").texts()
	if len(families) == 0 {
		families = []string{"IPv4"} // the default
	}
	for _, name := range []string{"nodes", "pods", "services"} {
		for _, field := range texts(networking.at(name)) {
			prefix, err := netip.ParsePrefix(field.text())
			if err != nil {
				continue
			}
			family := "IPv4"
			if prefix.Addr().Is6() {
				family = "IPv6"
			}
			if !slices.Contains(families, family) {
				r.add(field, TypeInvalid, "%s is a range of %s, and spec.runtimeCluster.networking.ipFamilies has %s only", prefix, family, strings.Join(families, ", "))
			}
		}
	}
	return r.findings
}
