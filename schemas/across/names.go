package across

import (
	"fmt"
	"iter"
	"strings"

	"github.com/pergola-dev/pergola/schemas"
)

// name is one that an object has in DNS, with what it leads to.
type name struct {
	dns, behind string
	// field is what it is made of.
	field string
	// record says that DNS has it; else it is one of those that a record with *. in front stands
	// for.
	record bool
}

// Who has which domain, and which name. Only one has a record; a record is no matter for what
// others have beside it, but for what they have above it.
const (
	domainOf    = "domain"
	recordOf    = "record of DNS"
	hostOf      = "name without a record"
	belowRecord = "at or above a record of DNS"
)

// namesOf are the names of a Garden, Seed or Shoot, and those of a Seed that another kind declares
// (components/garden; pkg/gardenlet/controller/seed, pkg/gardenlet/operation/botanist).
func namesOf(in *schemas.Input) []name {
	object, id := in.Content().Object, identityOf(in)
	switch id.kind {
	case kindGarden:
		var names []name
		for _, n := range schemas.GardenNames(object) {
			names = append(names, name{dns: n.Name, behind: n.Behind, field: n.Field, record: n.Record})
		}
		return names
	case kindShoot:
		const field = "spec.dns.domain"
		domain := normal(text(object, "spec", "dns", "domain"))
		if domain == "" {
			return nil
		}
		names := []name{{dns: "api." + domain, behind: "the API server", field: field, record: true}}
		if at(object, "spec", "addons", "nginxIngress", "enabled") == true {
			names = append(names, name{dns: "*.ingress." + domain, behind: "the ingress addon", field: field, record: true})
		}
		return names
	}
	spec := specsOfSeeds[id.kind.Kind]
	field := spec + ".ingress.domain"
	domain := normal(text(object, strings.Split(field, ".")...))
	if spec == "" || domain == "" {
		return nil
	}
	names := []name{{dns: "*." + domain, behind: "what is behind the ingress domain", field: field, record: true}}
	for _, host := range []string{"api-seed", "g-seed", "p-seed"} {
		names = append(names, name{dns: host + "." + domain, behind: "the monitoring and the API server of the seed", field: field})
	}
	return names
}

// specsOfSeeds is where kinds that declare a Seed have its specification.
var specsOfSeeds = map[string]string{"Seed": specOfSeed, "ManagedSeed": specOfManagedSeed, "Gardenlet": specOfGardenlet}

// normal is a domain as it is compared: a trailing dot and the case of letters make no other name.
func normal(domain string) string { return strings.ToLower(strings.Trim(domain, ".")) }

// upwards gives a name and what it is below of.
func upwards(dns string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for rest, more := dns, true; more; _, rest, more = strings.Cut(rest, ".") {
			if !yield(rest) {
				return
			}
		}
	}
}

// domainFields are the domains that nothing else has.
var domainFields = map[string][]string{
	"Garden": {"spec.runtimeCluster.ingress.domains[].name", "spec.virtualCluster.dns.domains[].name"},
	"Seed":   {specOfSeed + ".ingress.domain"}, "ManagedSeed": {specOfManagedSeed + ".ingress.domain"}, "Gardenlet": {specOfGardenlet + ".ingress.domain"},
	"Shoot": {"spec.dns.domain"},
}

// domainsIn visits the domains of an object, with their fields.
func domainsIn(in *schemas.Input, visit func(field, domain string)) {
	for _, pattern := range domainFields[identityOf(in).kind.Kind] {
		each(in.Content().Object, pattern, func(field string, value any) {
			if domain, _ := value.(string); normal(domain) != "" {
				visit(field, domain)
			}
		})
	}
}

// fieldOfDomain is the first that has a domain.
func fieldOfDomain(in *schemas.Input, wanted string) string {
	var found string
	domainsIn(in, func(field, domain string) {
		if found == "" && normal(domain) == wanted {
			found = field
		}
	})
	return found
}

// domainsUnique: nothing answers at one domain for two, and no name in DNS is in the way of another
// one.
func (c *check) domainsUnique() {
	reported := map[string]bool{}
	domainsIn(c.in, func(field, domain string) {
		u := use{domainOf, normal(domain)}
		other := c.other(u)
		if other == nil {
			c.claim(u)
			return
		}
		reported[field] = true
		c.report(field, schemas.TypeDuplicate, "the domain %q is that of %s already; choose another one", domain, placeOf(other, fieldOfDomain(other, u.value)))
	})
	c.namesUnique(reported)
}

// namesUnique: DNS has one record for a name, and one with *. in front does not stand for names
// that have something of their own, or below of them (RFC 4592).
func (c *check) namesUnique(reported map[string]bool) {
	for _, n := range namesOf(c.in) {
		if reported[n.field] { // one fault is told once
			continue
		}
		if message, typ := c.clash(n); message != "" {
			reported[n.field] = true
			c.report(n.field, typ, "%s; choose another domain", message)
			continue
		}
		c.claimName(n)
	}
}

// clash says what is wrong with a name.
func (c *check) clash(n name) (string, schemas.Type) {
	if !n.record {
		if other := c.other(use{belowRecord, n.dns}); other != nil {
			for _, its := range namesOf(other) {
				if its.record && (its.dns == n.dns || strings.HasSuffix(its.dns, "."+n.dns)) {
					return fmt.Sprintf("%q would not lead to %s: DNS has %q of %s", n.dns, n.behind, its.dns, placeOf(other, its.field)), schemas.TypeInvalid
				}
			}
		}
		return "", ""
	}
	if other := c.other(use{recordOf, n.dns}); other != nil {
		for _, its := range namesOf(other) {
			if its.record && its.dns == n.dns {
				return fmt.Sprintf("%q is to lead to %s, and DNS has one record of that name, which leads to %s of %s", n.dns, n.behind, its.behind, placeOf(other, its.field)), schemas.TypeDuplicate
			}
		}
	}
	for above := range upwards(n.dns) {
		if other := c.other(use{hostOf, above}); other != nil {
			for _, its := range namesOf(other) {
				if !its.record && its.dns == above {
					return fmt.Sprintf("with a record for %q in DNS %q would no longer lead to %s of %s", n.dns, above, its.behind, placeOf(other, its.field)), schemas.TypeInvalid
				}
			}
		}
	}
	return "", ""
}

func (c *check) claimName(n name) {
	if !n.record {
		c.claim(use{hostOf, n.dns})
		return
	}
	c.claim(use{recordOf, n.dns})
	for above := range upwards(n.dns) {
		c.claim(use{belowRecord, above})
	}
}

// other is who has a value, unless that is the object that is looked at, or declares the same Seed.
func (c *check) other(u use) *schemas.Input {
	other := c.uses[u]
	if other == nil || other == c.in {
		return nil
	}
	own, its := identityOf(c.in), identityOf(other)
	if specsOfSeeds[own.kind.Kind] != "" && specsOfSeeds[its.kind.Kind] != "" && own.name == its.name {
		return nil
	}
	return other
}

// placeOf a field of another object, for messages.
func placeOf(in *schemas.Input, field string) string {
	name := named(in)
	if in.Positions != nil {
		if p := in.Positions.Position(field); p.File != "" {
			return fmt.Sprintf("%s (%s:%d:%d: %s)", name, p.File, p.Line, p.Column, field)
		}
	}
	return fmt.Sprintf("%s (%s)", name, field)
}
