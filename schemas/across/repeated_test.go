package across

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/pergola-dev/pergola/schemas"
)

func TestOneFaultIsToldOnce(t *testing.T) {
	seed := func(rule, field, message string) schemas.Violation {
		return schemas.Violation{Kind: "Seed", Name: "a", Rule: rule, Field: field, Message: message}
	}
	zone, zoneInUse := seed("seed/zones-stay", "spec.provider.zones", `lost "z"; and so on`), seed("seed/zones-in-use", "spec.provider.zones", `lost the zone "z", and Shoots are on the seed: "s"`)
	domain, domainInUse := seed("seed/domains-changed", "spec.dns.defaults", `lost "d"`), seed("seed/domains-in-use", "spec.dns.defaults", `lost "d", and Shoots have names below it`)
	otherDomain := seed("seed/domains-changed", "spec.dns.defaults", `lost "e"`)
	otherSeed := zone
	otherSeed.Name = "b"
	assert.Equal(t, []schemas.Violation{otherSeed, zoneInUse, otherDomain, domainInUse}, WithoutForetold([]schemas.Violation{zone, otherSeed, zoneInUse, domain, otherDomain, domainInUse}))
	assert.Equal(t, []schemas.Violation{zone, domain}, WithoutForetold([]schemas.Violation{zone, domain}), "of Shoots that are not in Git only the API knows")
}
