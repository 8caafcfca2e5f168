package across

import (
	"slices"
	"strings"

	"github.com/pergola-dev/pergola/schemas"
)

// What a Seed must keep, because Shoots are on it. Source: plugin/pkg/utils
// (ValidateZoneRemovalFromSeeds, ValidateInternalDomainChangeForSeed,
// ValidateDefaultDomainsChangeForSeed), which is asked for Seeds and ManagedSeeds.

// Where the specification of a Seed is in kinds that have one.
const (
	specOfSeed        = "spec"
	specOfManagedSeed = "spec.gardenlet.config.seedConfig.spec"
	specOfGardenlet   = "spec.config.seedConfig.spec"
)

// shootsOn are the Shoots on the Seed of the name of the object that is looked at.
func (c *check) shootsOn() []*schemas.Input {
	return slices.DeleteFunc(slices.Clone(c.all(kindShoot)), func(in *schemas.Input) bool {
		shoot := in.Content().Object
		return text(shoot, "spec", "seedName") != c.name() && text(shoot, "status", "seedName") != c.name()
	})
}

// seedSpecs are the specifications before and now; false for what is new or has none.
func (c *check) seedSpecs(at string) (before, now map[string]any, ok bool) {
	path := strings.Split(at, ".")
	before, now = table(c.oldObject(), path...), table(c.object(), path...)
	return before, now, before != nil && now != nil
}

// keptZones: zones stay while there are Shoots.
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

// keptDomains: the internal domain stays while there are Shoots, a default domain while Shoots have
// names below it.
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
		// Until now the default domains of the garden were in force.
		for _, domain := range c.gardenDomains() {
			if !slices.Contains(kept, domain) {
				c.keptDomain(at, domain, "replaces the default domains of the garden without %q, and Shoots have names below it: %s")
			}
		}
	}
}

// keptDomain reports a default domain that is gone and that Shoots use.
func (c *check) keptDomain(at, domain, format string) {
	using := that(c.shootsOn(), func(shoot map[string]any) bool {
		return strings.HasSuffix(text(shoot, "spec", "dns", "domain"), "."+domain)
	})
	if len(using) > 0 {
		c.report(at+".dns.defaults", schemas.TypeForbidden, format, domain, users(using))
	}
}

// domainsOf are the default domains of a Seed, each once.
func domainsOf(spec map[string]any) []string {
	var out []string
	each(spec, "dns.defaults[].domain", func(_ string, v any) {
		if domain, ok := v.(string); ok && !slices.Contains(out, domain) {
			out = append(out, domain)
		}
	})
	return out
}

// gardenDomains are the default domains that Secrets of the garden name.
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
