// SPDX-License-Identifier: Apache-2.0

package namespacepolicies

import (
	"fmt"
	"net/netip"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Networks are the address ranges of a cluster.
type Networks struct {
	// Cluster contains the ranges of nodes, pods and Services; Services only the latter.
	Cluster, Services []netip.Prefix
	// Blocked ranges are only reachable with their own label.
	Blocked []netip.Prefix
}

// NetworksOfGarden reads the networks of a Garden's runtime cluster.
func NetworksOfGarden(garden *unstructured.Unstructured) (*Networks, error) {
	return readNetworks(garden, "spec", "runtimeCluster", "networking")
}

// NetworksOfSeed reads the networks of a Seed.
func NetworksOfSeed(seed *unstructured.Unstructured) (*Networks, error) {
	return readNetworks(seed, "spec", "networks")
}

func readNetworks(o *unstructured.Unstructured, path ...string) (*Networks, error) {
	from, _, err := unstructured.NestedMap(o.Object, path...)
	if err != nil {
		return nil, fmt.Errorf("reading the networks of %s %s: %w", o.GetKind(), o.GetName(), err)
	}
	out := &Networks{}
	for _, field := range []struct {
		name string
		to   []*[]netip.Prefix
	}{
		{"pods", []*[]netip.Prefix{&out.Cluster}},
		{"services", []*[]netip.Prefix{&out.Cluster, &out.Services}},
		{"nodes", []*[]netip.Prefix{&out.Cluster}},
		{"blockCIDRs", []*[]netip.Prefix{&out.Blocked}},
	} {
		ranges, err := parseRanges(from[field.name])
		if err != nil {
			return nil, fmt.Errorf("reading the networks of %s %s: %s: %w", o.GetKind(), o.GetName(), field.name, err)
		}
		for _, list := range field.to {
			*list = append(*list, ranges...)
		}
	}
	return out, nil
}

// networksOfShoot reads the declared and the actual networks of the Shoot in a Cluster, or nil for
// a Shoot without workers.
func networksOfShoot(cluster *unstructured.Unstructured) ([]netip.Prefix, error) {
	var out []netip.Prefix
	for _, part := range []string{"spec", "status"} {
		from, _, err := unstructured.NestedMap(cluster.Object, "spec", "shoot", part, "networking")
		if err != nil {
			return nil, fmt.Errorf("reading the networks of the Shoot in Cluster %s: %w", cluster.GetName(), err)
		}
		for _, field := range []string{"nodes", "pods", "services"} {
			ranges, err := parseRanges(from[field])
			if err != nil {
				return nil, fmt.Errorf("reading the networks of the Shoot in Cluster %s: %s.networking.%s: %w", cluster.GetName(), part, field, err)
			}
			out = append(out, ranges...)
		}
	}
	return out, nil
}

// parseRanges parses one range or a list of them.
func parseRanges(value any) ([]netip.Prefix, error) {
	var texts []any
	switch v := value.(type) {
	case nil:
	case string:
		texts = []any{v}
	case []any:
		texts = v
	default:
		return nil, fmt.Errorf("%v is not an address range", v)
	}
	var out []netip.Prefix
	for _, text := range texts {
		prefix, err := netip.ParsePrefix(fmt.Sprint(text))
		if err != nil {
			return nil, fmt.Errorf("%q is not an address range: %w", text, err)
		}
		out = append(out, prefix.Masked())
	}
	return out, nil
}

// equal reports whether two Networks are the same; nil means none.
func (n *Networks) equal(o *Networks) bool {
	if n == nil || o == nil {
		return n == o
	}
	return slices.Equal(n.Cluster, o.Cluster) && slices.Equal(n.Services, o.Services) && slices.Equal(n.Blocked, o.Blocked)
}
