// SPDX-License-Identifier: Apache-2.0

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

func checkInfrastructureNetworks(in ruleInput) []finding {
	r := &findingCollector{}
	root := fieldValue{value: in.object}
	config := root.lookup("spec", "provider", "infrastructureConfig")
	group, _, _ := strings.Cut(config.lookup("apiVersion").text(), "/")
	zones := config.lookup("networks", "zones").items()
	if !slices.Contains(zonedInfrastructures, group) || len(zones) == 0 {
		return nil
	}
	names := make([]string, len(zones))
	var subnets []network
	for i, zone := range zones {
		names[i] = zone.lookup("name").text()
		if first := slices.Index(names[:i], names[i]); first >= 0 {
			r.add(zone.lookup("name"), TypeDuplicate, "the zone %q is already listed as %s", names[i], zones[first].path)
		}
		for _, name := range []string{"internal", "public", "workers", "worker"} {
			if subnet, err := netip.ParsePrefix(zone.lookup(name).text()); err == nil {
				subnets = append(subnets, network{zone.lookup(name).path, subnet.Masked()})
			}
		}
	}
	used := map[string]bool{}
	for _, zone := range fieldsAtPath(root, "spec.provider.workers[].zones[]") {
		used[zone.text()] = true
		if !slices.Contains(names, zone.text()) {
			r.add(zone, TypeInvalid, "the infrastructure has no subnet for the zone %q: add it to %s", zone.text(), config.lookup("networks", "zones").path)
		}
	}
	for _, zone := range zones {
		if name := zone.lookup("name"); !used[name.text()] && len(used) > 0 {
			r.add(name, TypeInvalid, "no pool of workers has machines in the zone %q", name.text())
		}
	}
	for i, subnet := range subnets {
		r.findings = append(r.findings, findOverlaps(subnets[:i], []network{subnet})...)
	}
	if whole, err := netip.ParsePrefix(config.lookup("networks", "vpc", "cidr").text()); err == nil {
		for _, subnet := range subnets {
			if !whole.Contains(subnet.prefix.Addr()) || subnet.prefix.Bits() < whole.Bits() {
				r.findings = append(r.findings, finding{path: subnet.path, typ: TypeInvalid,
					message: fmt.Sprintf("the range %s is not within %s of %s", subnet.prefix, whole.Masked(), config.lookup("networks", "vpc", "cidr").path)})
			}
		}
	}
	return r.findings
}

func blockedNetworksCheck(at string) func(ruleInput) []finding {
	return func(in ruleInput) []finding {
		fields := strings.Split(at, ".")
		own := []network{}
		for _, name := range []string{"nodes", "pods", "services"} {
			own = append(own, collectNetworks(in.object, at+"."+name, append(slices.Clone(fields), name)...)...)
		}
		return findOverlaps(own, collectNetworks(in.object, at+".blockCIDRs", append(slices.Clone(fields), "blockCIDRs")...))
	}
}

func checkSeedShootDefaults(in ruleInput) []finding {
	var own, defaults []network
	for _, name := range []string{"nodes", "pods", "services"} {
		own = append(own, collectNetworks(in.object, "spec.networks."+name, "spec", "networks", name)...)
		defaults = append(defaults, collectNetworks(in.object, "spec.networks.shootDefaults."+name, "spec", "networks", "shootDefaults", name)...)
	}
	found := findOverlaps(own, defaults)
	for i, n := range defaults {
		found = append(found, findOverlaps(defaults[:i], []network{n})...)
	}
	return found
}

// defaultNodeMask is the size of the range of a node if nodeCIDRMaskSize is not set
// (https://kubernetes.io/docs/reference/command-line-tools-reference/kube-controller-manager).
const defaultNodeMask = 24

// checkPodRangeSize checks that the pod network has a range for every node that the pools may have.
func checkPodRangeSize(in ruleInput) []finding {
	r, spec := &findingCollector{}, fieldValue{value: in.object}.lookup("spec")
	pods, err := netip.ParsePrefix(spec.lookup("networking", "pods").text())
	if err != nil || !pods.Addr().Is4() {
		return nil
	}
	mask := defaultNodeMask
	if given := spec.lookup("kubernetes", "kubeControllerManager", "nodeCIDRMaskSize"); given.isSet() {
		mask = given.integer()
	}
	bits := mask - pods.Bits()
	if bits < 0 || bits > 20 {
		return nil // another rule reports too small ranges, and no cluster has more nodes
	}
	nodes := 0
	for _, worker := range spec.lookup("provider", "workers").items() {
		nodes += max(0, worker.lookup("maximum").integer())
	}
	if ranges := 1 << bits; nodes > ranges {
		r.add(spec.lookup("networking", "pods"), TypeInvalid, "%s has ranges for %d nodes (each a /%d, spec.kubernetes.kubeControllerManager.nodeCIDRMaskSize), but the pools may have %d", pods, ranges, mask, nodes)
	}
	return r.findings
}

func checkRuntimeFamilies(in ruleInput) []finding {
	r, networking := &findingCollector{}, fieldValue{value: in.object}.lookup("spec", "runtimeCluster", "networking")
	families := networking.lookup("ipFamilies").texts()
	if len(families) == 0 {
		families = []string{"IPv4"} // the default
	}
	for _, name := range []string{"nodes", "pods", "services"} {
		for _, field := range itemsOrSelf(networking.lookup(name)) {
			prefix, err := netip.ParsePrefix(field.text())
			if err != nil {
				continue
			}
			family := "IPv4"
			if prefix.Addr().Is6() {
				family = "IPv6"
			}
			if !slices.Contains(families, family) {
				r.add(field, TypeInvalid, "%s is a range of %s, but spec.runtimeCluster.networking.ipFamilies has only %s", prefix, family, strings.Join(families, ", "))
			}
		}
	}
	return r.findings
}
