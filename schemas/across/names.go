package across

import (
	"fmt"
	"iter"
	"strings"

	"github.com/pergola-dev/pergola/schemas"
)

// name is a DNS name of an object, with its target.
type name struct {
	dns, behind string
	// field is the source of the name.
	field string
	// record reports whether DNS has a record; else a wildcard record covers the name.
	record bool
}

// Kinds of unique values. A record conflicts only with the names above it, not beside it.
const (
	domainOf    = "domain"
	recordOf    = "record of DNS"
	hostOf      = "name without a record"
	belowRecord = "at or above a record of DNS"
)

// namesOf returns the DNS names of a Garden, Shoot, or Seed (declared by any kind;
// components/garden; pkg/gardenlet/controller/seed, pkg/gardenlet/operation/botanist).
func namesOf(in *schemas.Input) []name {
	object, id := in.Content().Object, identityOf(in)
	switch id.kind {
	case kindGarden:
		var names []name
		for _, n := range schemas.GardenDNSNames(object) {
			names = append(names, name{dns: n.Name, behind: n.Target, field: n.Field, record: n.HasRecord})
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

// specsOfSeeds are the paths of the Seed specification in kinds that declare a Seed.
var specsOfSeeds = map[string]string{"Seed": specOfSeed, "ManagedSeed": specOfManagedSeed, "Gardenlet": specOfGardenlet}

// normal returns a domain for comparison: in lower case, without a trailing dot.
func normal(domain string) string { return strings.ToLower(strings.Trim(domain, ".")) }

// upwards yields a name and all its parent domains.
func upwards(dns string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for rest, more := dns, true; more; _, rest, more = strings.Cut(rest, ".") {
			if !yield(rest) {
				return
			}
		}
	}
}

// domainFields are the fields with domains that must be unique.
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

// fieldOfDomain returns the first field that has the domain.
func fieldOfDomain(in *schemas.Input, wanted string) string {
	var found string
	domainsIn(in, func(field, domain string) {
		if found == "" && normal(domain) == wanted {
			found = field
		}
	})
	return found
}

// domainsUnique checks that domains are unique and that no DNS name shadows another one.
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

// namesUnique checks that a DNS name has one record, and that no record shadows names of a wildcard
// (RFC 4592).
func (c *check) namesUnique(reported map[string]bool) {
	for _, n := range namesOf(c.in) {
		if reported[n.field] { // one finding per field
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

// clash returns the message for a conflicting name, "" if there is no conflict.
func (c *check) clash(n name) (string, schemas.ViolationType) {
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

// other returns another object that claims a value; nil if it declares the same Seed.
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

// placeOf returns an object and the position of one of its fields, for messages.
func placeOf(in *schemas.Input, field string) string {
	name := named(in)
	if in.Positions != nil {
		if p := in.Positions.Position(field); p.File != "" {
			return fmt.Sprintf("%s (%s:%d:%d: %s)", name, p.File, p.Line, p.Column, field)
		}
	}
	return fmt.Sprintf("%s (%s)", name, field)
}
