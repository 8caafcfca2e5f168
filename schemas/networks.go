// SPDX-License-Identifier: Apache-2.0

package schemas

import (
	"fmt"
	"net/netip"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// network is a range and the field that holds it.
type network struct {
	path   string
	prefix netip.Prefix
}

// collectNetworks reads the ranges of one field, a text or a list of texts. The structural check
// reports values that are not ranges.
func collectNetworks(object map[string]any, path string, fields ...string) (networks []network) {
	value, found, err := unstructured.NestedFieldNoCopy(object, fields...)
	if err != nil || !found {
		return nil
	}
	read := func(path string, value any) {
		text, ok := value.(string)
		if !ok {
			return
		}
		prefix, err := netip.ParsePrefix(text)
		if err != nil {
			return
		}
		networks = append(networks, network{path: path, prefix: prefix.Masked()})
	}
	if list, ok := value.([]any); ok {
		for i, item := range list {
			read(fmt.Sprintf("%s[%d]", path, i), item)
		}
	} else {
		read(path, value)
	}
	return networks
}

// findOverlaps compares the ranges of every group with the groups before it, and reports the later
// range.
func findOverlaps(groups ...[]network) []finding {
	var findings []finding
	for i, group := range groups {
		for _, n := range group {
			for _, other := range slices.Concat(groups[:i]...) {
				if n.prefix.Overlaps(other.prefix) {
					findings = append(findings, finding{path: n.path, typ: TypeInvalid,
						message: fmt.Sprintf("the range %s overlaps with %s of %s", n.prefix, other.prefix, other.path)})
					break
				}
			}
		}
	}
	return findings
}

// checkGardenNetworks compares the ranges of the runtime cluster with one another, and with the
// services of the virtual garden.
func checkGardenNetworks(in ruleInput) []finding {
	read := func(cluster, field string) []network {
		return collectNetworks(in.object, "spec."+cluster+".networking."+field, "spec", cluster, "networking", field)
	}
	services, pods, nodes := read("runtimeCluster", "services"), read("runtimeCluster", "pods"), read("runtimeCluster", "nodes")
	virtual := read("virtualCluster", "services")
	return append(findOverlaps(services, pods, nodes), findOverlaps(slices.Concat(services, pods, nodes), virtual)...)
}

func checkShootNetworks(in ruleInput) []finding {
	return checkNetworkOverlaps(in.object, "spec", "networking")
}

func checkNetworkOverlaps(object map[string]any, parent ...string) []finding {
	read := func(field string) []network {
		return collectNetworks(object, parent[0]+"."+parent[1]+"."+field, parent[0], parent[1], field)
	}
	return findOverlaps(read("pods"), read("services"), read("nodes"))
}
