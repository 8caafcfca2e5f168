// SPDX-License-Identifier: Apache-2.0

package crosscheck

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/pergola-dev/pergola/schemas"
	"github.com/pergola-dev/pergola/schemas/mutation"
)

// networkField is a range with its field.
type networkField struct {
	path   string
	prefix netip.Prefix
}

// readNetworks parses the ranges at paths to strings or lists. The structure reports invalid
// ranges.
func readNetworks(object map[string]any, paths ...string) []networkField {
	var out []networkField
	read := func(path string, value any) {
		if s, ok := value.(string); ok {
			if prefix, err := netip.ParsePrefix(s); err == nil {
				out = append(out, networkField{path, prefix.Masked()})
			}
		}
	}
	for _, p := range paths {
		visitValues(object, p, func(path string, value any) {
			items, ok := value.([]any)
			if !ok {
				read(path, value)
				return
			}
			for i, item := range items {
				read(fmt.Sprintf("%s[%d]", path, i), item)
			}
		})
	}
	return out
}

func seedNetworks(seed map[string]any) []networkField {
	return readNetworks(seed, "spec.networks.nodes", "spec.networks.pods", "spec.networks.services")
}

func runtimeNetworks(garden map[string]any) []networkField {
	const runtime = "spec.runtimeCluster.networking."
	return readNetworks(garden, runtime+"nodes", runtime+"pods", runtime+"services")
}

// checkShootNetworks checks that a Shoot's networks are disjoint from its Seed's, as control planes
// route to both. The Seed supplies missing ranges. Source: plugin/pkg/shoot/validator;
// pkg/utils/validation/cidr.
func (c *checker) checkShootNetworks() {
	seed := c.findSeed()
	if seed == nil {
		return
	}
	own := readNetworks(c.object(), "spec.networking.nodes", "spec.networking.pods", "spec.networking.services")
	name := fmt.Sprintf("the Seed %q", textAt(c.object(), "spec", "seedName"))
	c.checkDisjoint(own, seedNetworks(seed), name)
	for _, n := range own {
		for _, reserved := range schemas.ReservedNetworks() {
			if n.prefix.Overlaps(reserved) {
				c.report(n.path, schemas.TypeInvalid, "the range %s overlaps with %s, which Gardener uses itself between %s and its Shoots", n.prefix, reserved, name)
				break
			}
		}
	}
	c.checkOmittedNetworks(name)
}

// checkOmittedNetworks checks that the Seed supplies the ranges that the Shoot omits.
func (c *checker) checkOmittedNetworks(seed string) {
	if mapAt(c.object(), "spec", "networking") == nil {
		return // the rules about the Shoot report a missing one
	}
	changes := c.shootMutations().Changes
	for _, name := range []string{"pods", "services"} {
		field := "spec.networking." + name
		if valueAt(c.object(), "spec", "networking", name) != nil || name == "pods" && len(listAt(c.object(), "spec", "provider", "workers")) == 0 {
			continue
		}
		if !slices.ContainsFunc(changes, func(change mutation.Change) bool { return change.Field == field }) {
			c.report(field, schemas.TypeRequired, "%s has no range for the %s of Shoots (spec.networks.shootDefaults) of the IP family of the Shoot; set one here", seed, name)
		}
	}
}

// checkSeedAgainstRuntime checks that a Seed's networks are disjoint from the runtime cluster's. A
// Seed with exactly the same ranges is the runtime cluster.
func (c *checker) checkSeedAgainstRuntime() {
	for _, in := range c.allOfKind(kindGarden) {
		own, runtime := seedNetworks(c.object()), runtimeNetworks(in.Content().Object)
		if !hasSameRanges(own, runtime) {
			c.checkDisjoint(own, runtime, "the runtime cluster of Garden "+identityOf(in).name)
		}
	}
}

// checkShootAgainstRuntime compares a Shoot with the runtime cluster, unless that is also the
// Shoot's Seed.
func (c *checker) checkShootAgainstRuntime() {
	for _, in := range c.allOfKind(kindGarden) {
		seed, runtime := c.findSeed(), runtimeNetworks(in.Content().Object)
		if seed == nil || hasSameRanges(seedNetworks(seed), runtime) {
			continue
		}
		c.checkDisjoint(readNetworks(c.object(), "spec.networking.nodes", "spec.networking.pods", "spec.networking.services"), runtime,
			"the runtime cluster of Garden "+identityOf(in).name)
	}
}

func (c *checker) checkDisjoint(own, others []networkField, whose string) {
	for _, n := range own {
		for _, other := range others {
			if n.prefix.Overlaps(other.prefix) {
				c.report(n.path, schemas.TypeInvalid, "the range %s overlaps with %s of %s (%s)", n.prefix, other.prefix, whose, other.path)
				break
			}
		}
	}
}

func hasSameRanges(a, b []networkField) bool {
	if len(a) == 0 || len(a) != len(b) {
		return false
	}
	ranges := map[netip.Prefix]bool{}
	for _, n := range a {
		ranges[n.prefix] = true
	}
	for _, n := range b {
		if !ranges[n.prefix] {
			return false
		}
	}
	return true
}
