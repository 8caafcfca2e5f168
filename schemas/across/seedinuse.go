package across

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
	specOfSeed        = "spec"
	specOfManagedSeed = "spec.gardenlet.config.seedConfig.spec"
	specOfGardenlet   = "spec.config.seedConfig.spec"
)

// shootsOn returns the Shoots on the Seed with the current object's name.
func (c *check) shootsOn() []*schemas.Input {
	return slices.DeleteFunc(slices.Clone(c.all(kindShoot)), func(in *schemas.Input) bool {
		shoot := in.Content().Object
		return text(shoot, "spec", "seedName") != c.name() && text(shoot, "status", "seedName") != c.name()
	})
}

// seedSpecs returns both revisions of the Seed specification; false if one is missing.
func (c *check) seedSpecs(at string) (before, now map[string]any, ok bool) {
	path := strings.Split(at, ".")
	before, now = table(c.oldObject(), path...), table(c.object(), path...)
	return before, now, before != nil && now != nil
}

// keptZones checks that a Seed with Shoots retains its zones.
func keptZones(at string) func(*check) {
	return func(c *check) {
		before, now, ok := c.seedSpecs(at)
		if !ok {
			return
		}
		kept := texts(list(now, "provider", "zones"))
		for _, zone := range texts(list(before, "provider", "zones")) {
			if slices.Contains(kept, zone) {
				continue
			}
			if using := c.shootsOn(); len(using) > 0 {
				c.report(at+".provider.zones", schemas.TypeForbidden, "lost the zone %q, and Shoots are on the seed: %s", zone, users(using))
			}
		}
	}
}

// keptDomains checks that a Seed with Shoots retains its internal domain, and each default domain
// that Shoots use.
func keptDomains(at string) func(*check) {
	return func(c *check) {
		before, now, ok := c.seedSpecs(at)
		if !ok {
			return
		}
		was, is := text(before, "dns", "internal", "domain"), text(now, "dns", "internal", "domain")
		if was != "" && is != "" && was != is {
			if using := c.shootsOn(); len(using) > 0 {
				c.report(at+".dns.internal.domain", schemas.TypeForbidden, "was %q, and Shoots are on the seed: %s", was, users(using))
			}
		}
		kept := domainsOf(now)
		for _, domain := range domainsOf(before) {
			if !slices.Contains(kept, domain) {
				c.keptDomain(at, domain, "lost %q, and Shoots have names below it: %s")
			}
		}
		if len(domainsOf(before)) > 0 || len(kept) == 0 {
			return
		}
		// The Seed used the default domains of the garden before.
		for _, domain := range c.gardenDomains() {
			if !slices.Contains(kept, domain) {
				c.keptDomain(at, domain, "replaces the default domains of the garden without %q, and Shoots have names below it: %s")
			}
		}
	}
}

// keptDomain reports a removed default domain that Shoots use.
func (c *check) keptDomain(at, domain, format string) {
	using := that(c.shootsOn(), func(shoot map[string]any) bool {
		return strings.HasSuffix(text(shoot, "spec", "dns", "domain"), "."+domain)
	})
	if len(using) > 0 {
		c.report(at+".dns.defaults", schemas.TypeForbidden, format, domain, users(using))
	}
}

// domainsOf returns the distinct default domains of a Seed.
func domainsOf(spec map[string]any) []string {
	var out []string
	each(spec, "dns.defaults[].domain", func(_ string, v any) {
		if domain, ok := v.(string); ok && !slices.Contains(out, domain) {
			out = append(out, domain)
		}
	})
	return out
}

// gardenDomains returns the default domains in Secrets of namespace garden.
func (c *check) gardenDomains() []string {
	var out []string
	for _, in := range c.all(kindSecret) {
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
