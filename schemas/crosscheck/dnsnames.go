// SPDX-License-Identifier: Apache-2.0

package crosscheck

import (
	"fmt"
	"iter"
	"strings"

	"github.com/pergola-dev/pergola/schemas"
)

// dnsName is a DNS name of an object, with its target.
type dnsName struct {
	fqdn, target string
	// sourceField is the source of the name.
	sourceField string
	// hasRecord reports whether DNS has a record; else a wildcard record covers the name.
	hasRecord bool
}

// Kinds of unique values. A record conflicts only with the names above it, not beside it.
const (
	purposeDomain         = "domain"
	purposeDNSRecord      = "record of DNS"
	purposeWildcardName   = "name without a record"
	purposeRecordOrParent = "at or above a record of DNS"
)

// dnsNamesOf returns the DNS names of a Garden, Shoot, or Seed (declared by any kind;
// components/garden; pkg/gardenlet/controller/seed, pkg/gardenlet/operation/botanist).
func dnsNamesOf(in *schemas.Input) []dnsName {
	object, id := in.Content().Object, identityOf(in)
	switch id.kind {
	case kindGarden:
		var names []dnsName
		for _, n := range schemas.GardenDNSNames(object) {
			names = append(names, dnsName{fqdn: n.Name, target: n.Target, sourceField: n.Field, hasRecord: n.HasRecord})
		}
		return names
	case kindShoot:
		const field = "spec.dns.domain"
		domain := normalizeDomain(textAt(object, "spec", "dns", "domain"))
		if domain == "" {
			return nil
		}
		names := []dnsName{{fqdn: "api." + domain, target: "the API server", sourceField: field, hasRecord: true}}
		if valueAt(object, "spec", "addons", "nginxIngress", "enabled") == true {
			names = append(names, dnsName{fqdn: "*.ingress." + domain, target: "the ingress addon", sourceField: field, hasRecord: true})
		}
		return names
	}
	spec := seedSpecPaths[id.kind.Kind]
	field := spec + ".ingress.domain"
	domain := normalizeDomain(textAt(object, strings.Split(field, ".")...))
	if spec == "" || domain == "" {
		return nil
	}
	names := []dnsName{{fqdn: "*." + domain, target: "the services below the ingress domain", sourceField: field, hasRecord: true}}
	for _, host := range []string{"api-seed", "g-seed", "p-seed"} {
		names = append(names, dnsName{fqdn: host + "." + domain, target: "the monitoring and the API server of the seed", sourceField: field})
	}
	return names
}

// seedSpecPaths are the paths of the Seed specification in kinds that declare a Seed.
var seedSpecPaths = map[string]string{"Seed": seedSpecPath, "ManagedSeed": managedSeedSpecPath, "Gardenlet": gardenletSpecPath}

// normalizeDomain returns a domain for comparison: in lower case, without a trailing dot.
func normalizeDomain(domain string) string { return strings.ToLower(strings.Trim(domain, ".")) }

// parentDomains yields a name and all its parent domains.
func parentDomains(dns string) iter.Seq[string] {
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
	"Seed":   {seedSpecPath + ".ingress.domain"}, "ManagedSeed": {managedSeedSpecPath + ".ingress.domain"}, "Gardenlet": {gardenletSpecPath + ".ingress.domain"},
	"Shoot": {"spec.dns.domain"},
}

// visitDomains visits the domains of an object, with their fields.
func visitDomains(in *schemas.Input, visit func(field, domain string)) {
	for _, pattern := range domainFields[identityOf(in).kind.Kind] {
		visitValues(in.Content().Object, pattern, func(field string, value any) {
			if domain, _ := value.(string); normalizeDomain(domain) != "" {
				visit(field, domain)
			}
		})
	}
}

// domainField returns the first field that has the domain.
func domainField(in *schemas.Input, wanted string) string {
	var found string
	visitDomains(in, func(field, domain string) {
		if found == "" && normalizeDomain(domain) == wanted {
			found = field
		}
	})
	return found
}

// checkDomainsUnique checks that domains are unique and that no DNS name shadows another one.
func (c *checker) checkDomainsUnique() {
	reported := map[string]bool{}
	visitDomains(c.input, func(field, domain string) {
		u := uniqueValue{purposeDomain, normalizeDomain(domain)}
		other := c.otherOwner(u)
		if other == nil {
			c.claim(u)
			return
		}
		reported[field] = true
		c.report(field, schemas.TypeDuplicate, "the domain %q already belongs to %s; choose another one", domain, fieldPosition(other, domainField(other, u.value)))
	})
	c.checkDNSNamesUnique(reported)
}

// checkDNSNamesUnique checks that a DNS name has one record, and that no record shadows names of a
// wildcard (RFC 4592).
func (c *checker) checkDNSNamesUnique(reported map[string]bool) {
	for _, n := range dnsNamesOf(c.input) {
		if reported[n.sourceField] { // one finding per field
			continue
		}
		if message, typ := c.dnsNameConflict(n); message != "" {
			reported[n.sourceField] = true
			c.report(n.sourceField, typ, "%s; choose another domain", message)
			continue
		}
		c.claimDNSName(n)
	}
}

// dnsNameConflict returns the message for a conflicting name, or "" if there is no conflict.
func (c *checker) dnsNameConflict(n dnsName) (string, schemas.ViolationType) {
	if !n.hasRecord {
		if other := c.otherOwner(uniqueValue{purposeRecordOrParent, n.fqdn}); other != nil {
			for _, its := range dnsNamesOf(other) {
				if its.hasRecord && (its.fqdn == n.fqdn || strings.HasSuffix(its.fqdn, "."+n.fqdn)) {
					return fmt.Sprintf("%q would not lead to %s, because DNS has %q of %s", n.fqdn, n.target, its.fqdn, fieldPosition(other, its.sourceField)), schemas.TypeInvalid
				}
			}
		}
		return "", ""
	}
	if other := c.otherOwner(uniqueValue{purposeDNSRecord, n.fqdn}); other != nil {
		for _, its := range dnsNamesOf(other) {
			if its.hasRecord && its.fqdn == n.fqdn {
				return fmt.Sprintf("%q must lead to %s, but the only DNS record of that name leads to %s of %s", n.fqdn, n.target, its.target, fieldPosition(other, its.sourceField)), schemas.TypeDuplicate
			}
		}
	}
	for above := range parentDomains(n.fqdn) {
		if other := c.otherOwner(uniqueValue{purposeWildcardName, above}); other != nil {
			for _, its := range dnsNamesOf(other) {
				if !its.hasRecord && its.fqdn == above {
					return fmt.Sprintf("with a DNS record for %q, the name %q would no longer lead to %s of %s", n.fqdn, above, its.target, fieldPosition(other, its.sourceField)), schemas.TypeInvalid
				}
			}
		}
	}
	return "", ""
}

func (c *checker) claimDNSName(n dnsName) {
	if !n.hasRecord {
		c.claim(uniqueValue{purposeWildcardName, n.fqdn})
		return
	}
	c.claim(uniqueValue{purposeDNSRecord, n.fqdn})
	for above := range parentDomains(n.fqdn) {
		c.claim(uniqueValue{purposeRecordOrParent, above})
	}
}

// otherOwner returns another object that claims a value, or nil if it declares the same Seed.
func (c *checker) otherOwner(u uniqueValue) *schemas.Input {
	other := c.valueOwners[u]
	if other == nil || other == c.input {
		return nil
	}
	own, its := identityOf(c.input), identityOf(other)
	if seedSpecPaths[own.kind.Kind] != "" && seedSpecPaths[its.kind.Kind] != "" && own.name == its.name {
		return nil
	}
	return other
}

// fieldPosition returns an object and the position of one of its fields, for messages.
func fieldPosition(in *schemas.Input, field string) string {
	name := objectName(in)
	if in.Positions != nil {
		if p := in.Positions.Position(field); p.File != "" {
			return fmt.Sprintf("%s (%s:%d:%d: %s)", name, p.File, p.Line, p.Column, field)
		}
	}
	return fmt.Sprintf("%s (%s)", name, field)
}
