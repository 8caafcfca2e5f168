// SPDX-License-Identifier: Apache-2.0

package crosscheck

import (
	"slices"
	"strings"

	"github.com/pergola-dev/pergola/schemas"
)

// A Seed must retain the values that its Shoots use. Source: plugin/pkg/utils
// (ValidateZoneRemovalFromSeeds, ValidateInternalDomainChangeForSeed,
// ValidateDefaultDomainsChangeForSeed), for Seeds and ManagedSeeds.

// Paths of the Seed specification in the kinds that contain one.
const (
	seedSpecPath        = "spec"
	managedSeedSpecPath = "spec.gardenlet.config.seedConfig.spec"
	gardenletSpecPath   = "spec.config.seedConfig.spec"
)

// shootsOfSeed returns the Shoots on the Seed with the current object's name.
func (c *checker) shootsOfSeed() []*schemas.Input {
	return slices.DeleteFunc(slices.Clone(c.allOfKind(kindShoot)), func(in *schemas.Input) bool {
		shoot := in.Content().Object
		return textAt(shoot, "spec", "seedName") != c.name() && textAt(shoot, "status", "seedName") != c.name()
	})
}

// oldAndNewSeedSpec returns both revisions of the Seed specification, or false if one is missing.
func (c *checker) oldAndNewSeedSpec(at string) (before, now map[string]any, ok bool) {
	path := strings.Split(at, ".")
	before, now = mapAt(c.oldObject(), path...), mapAt(c.object(), path...)
	return before, now, before != nil && now != nil
}

// checkZonesInUse checks that a Seed with Shoots retains its zones.
func checkZonesInUse(at string) func(*checker) {
	return func(c *checker) {
		before, now, ok := c.oldAndNewSeedSpec(at)
		if !ok {
			return
		}
		kept := stringItems(listAt(now, "provider", "zones"))
		for _, zone := range stringItems(listAt(before, "provider", "zones")) {
			if slices.Contains(kept, zone) {
				continue
			}
			if using := c.shootsOfSeed(); len(using) > 0 {
				c.report(at+".provider.zones", schemas.TypeForbidden, "lost the zone %q, and Shoots are on the seed: %s", zone, describeUsers(using))
			}
		}
	}
}

// checkDomainsInUse checks that a Seed with Shoots retains its internal domain, and each default
// domain that Shoots use.
func checkDomainsInUse(at string) func(*checker) {
	return func(c *checker) {
		before, now, ok := c.oldAndNewSeedSpec(at)
		if !ok {
			return
		}
		was, is := textAt(before, "dns", "internal", "domain"), textAt(now, "dns", "internal", "domain")
		if was != "" && is != "" && was != is {
			if using := c.shootsOfSeed(); len(using) > 0 {
				c.report(at+".dns.internal.domain", schemas.TypeForbidden, "was %q, and Shoots are on the seed: %s", was, describeUsers(using))
			}
		}
		kept := seedDefaultDomains(now)
		for _, domain := range seedDefaultDomains(before) {
			if !slices.Contains(kept, domain) {
				c.reportDomainInUse(at, domain, "lost %q, and Shoots have names below it: %s")
			}
		}
		if len(seedDefaultDomains(before)) > 0 || len(kept) == 0 {
			return
		}
		// The Seed used the default domains of the garden before.
		for _, domain := range c.gardenDefaultDomains() {
			if !slices.Contains(kept, domain) {
				c.reportDomainInUse(at, domain, "replaces the default domains of the garden without %q, and Shoots have names below it: %s")
			}
		}
	}
}

// reportDomainInUse reports a removed default domain that Shoots use.
func (c *checker) reportDomainInUse(at, domain, format string) {
	using := filterInputs(c.shootsOfSeed(), func(shoot map[string]any) bool {
		return strings.HasSuffix(textAt(shoot, "spec", "dns", "domain"), "."+domain)
	})
	if len(using) > 0 {
		c.report(at+".dns.defaults", schemas.TypeForbidden, format, domain, describeUsers(using))
	}
}

// seedDefaultDomains returns the distinct default domains of a Seed.
func seedDefaultDomains(spec map[string]any) []string {
	var out []string
	visitValues(spec, "dns.defaults[].domain", func(_ string, v any) {
		if domain, ok := v.(string); ok && !slices.Contains(out, domain) {
			out = append(out, domain)
		}
	})
	return out
}

// gardenDefaultDomains returns the default domains in Secrets of namespace garden.
func (c *checker) gardenDefaultDomains() []string {
	var out []string
	for _, in := range c.allOfKind(kindSecret) {
		secret := in.Content()
		if identityOf(in).namespace != "garden" || secret.GetLabels()["gardener.cloud/role"] != "default-domain" {
			continue
		}
		if domain := secret.GetAnnotations()["dns.gardener.cloud/domain"]; domain != "" {
			out = append(out, domain)
		}
	}
	slices.Sort(out)
	return out
}
