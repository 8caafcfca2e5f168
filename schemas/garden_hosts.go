// SPDX-License-Identifier: Apache-2.0

package schemas

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// gardenHost is a host name that the gateway of a Garden serves.
type gardenHost struct {
	// sourceField is the field that the name is made of or written in.
	sourceField fieldValue
	name        string
	// target is the target of the name.
	target string
}

// gardenDomains returns the domains from which a Garden makes names, and the own domains of
// dashboard and discovery server.
func gardenDomains(garden map[string]any) (ingress, virtual []fieldValue, dashboard, discovery fieldValue) {
	spec := fieldValue{value: garden}.lookup("spec")
	return spec.lookup("runtimeCluster", "ingress", "domains").items(), spec.lookup("virtualCluster", "dns", "domains").items(),
		gardenComponent(garden, "gardenerDashboard").lookup("domain"), gardenComponent(garden, "gardenerDiscoveryServer").lookup("domain")
}

// catalogueHosts returns the names that the catalogue makes of the domains (components/garden).
func catalogueHosts(garden map[string]any) []gardenHost {
	ingress, virtual, dashboard, discovery := gardenDomains(garden)
	var hosts []gardenHost
	add := func(domain fieldValue, behind string, prefixes ...string) {
		name := domain.lookup("name")
		for _, prefix := range prefixes {
			if name.text() != "" {
				hosts = append(hosts, gardenHost{sourceField: name, name: prefix + "." + name.text(), target: behind})
			}
		}
	}
	for _, domain := range virtual {
		add(domain, "the API server", "api", "gardener")
	}
	for i, domain := range ingress {
		if i == 0 {
			add(domain, "monitoring", "alertmanager-garden", "plutono-garden", "prometheus-garden", "prometheus-longterm")
		}
		if i == 0 && gardenComponent(garden, "gardenerDiscoveryServer").isSet() && !discovery.isSet() {
			add(domain, "the discovery server", "discovery")
		}
		if gardenComponent(garden, "gardenerDashboard").isSet() && !dashboard.isSet() {
			add(domain, "the dashboard", "dashboard")
		}
	}
	return hosts
}

// checkGardenHosts checks that every name has one target, because the gateway routes by name.
func checkGardenHosts(in ruleInput) []finding {
	r := &findingCollector{}
	known := map[string]gardenHost{}
	for _, host := range catalogueHosts(in.object) {
		known[host.name] = host
	}
	_, _, dashboard, discovery := gardenDomains(in.object)
	for _, host := range []gardenHost{
		{sourceField: dashboard.lookup("name"), name: dashboard.lookup("name").text(), target: "the dashboard"},
		{sourceField: discovery.lookup("name"), name: discovery.lookup("name").text(), target: "the discovery server"},
	} {
		if host.name == "" {
			continue
		}
		if other, taken := known[host.name]; taken {
			r.add(host.sourceField, TypeDuplicate, "%q already leads to %s, by %s; choose another name for %s", host.name, other.target, other.sourceField.path, host.target)
			continue
		}
		known[host.name] = host
	}
	return r.findings
}

// GardenDNSName is a name of a Garden in DNS.
type GardenDNSName struct {
	// Name has no trailing dot. A leading *. makes it cover all names right below it that have no
	// separate record.
	Name string
	// Field is the field that the name is made of or written in; Target is its target.
	Field, Target string
	// HasRecord reports whether DNS has the name. Otherwise a name with a leading *. covers it.
	HasRecord bool
}

// GardenDNSNames returns the names that a Garden has in DNS, and the names below its ingress
// domains that it serves.
func GardenDNSNames(garden map[string]any) []GardenDNSName {
	var names []GardenDNSName
	add := func(field fieldValue, name, behind string, record bool) {
		if field.text() != "" {
			names = append(names, GardenDNSName{Name: strings.ToLower(strings.TrimSuffix(name, ".")), Field: field.path, Target: behind, HasRecord: record})
		}
	}
	ingress, virtual, dashboard, discovery := gardenDomains(garden)
	below := map[string]bool{}
	for _, domain := range ingress {
		name := domain.lookup("name")
		below[name.text()] = true
		add(name, "*."+name.text(), "the services below the ingress domain", true)
	}
	made := map[string]bool{}
	for _, domain := range virtual {
		made[domain.lookup("name").path] = true
	}
	for _, host := range catalogueHosts(garden) {
		add(host.sourceField, host.name, host.target, made[host.sourceField.path])
	}
	for behind, domain := range map[string]fieldValue{"the dashboard": dashboard, "the discovery server": discovery} {
		name := domain.lookup("name")
		_, parent, _ := strings.Cut(name.text(), ".")
		add(name, name.text(), behind, !below[parent])
	}
	slices.SortFunc(names, func(a, b GardenDNSName) int {
		return cmp.Or(cmp.Compare(a.Field, b.Field), cmp.Compare(a.Name, b.Name))
	})
	return names
}

// checkGardenNameShadowing reports names that hide others: a record with a leading *. covers no
// name that exists, and a name exists if another one is below it.
func checkGardenNameShadowing(in ruleInput) []finding {
	r := &findingCollector{}
	names := GardenDNSNames(in.object)
	for _, host := range names {
		if host.HasRecord {
			continue
		}
		for _, other := range names {
			if other.HasRecord && strings.HasSuffix(other.Name, "."+host.Name) {
				r.add(fieldValue{path: other.Field}, TypeInvalid, "a DNS record for %q, which is below %q, stops *.DOMAIN of %s from leading to %s; choose a name that is not below it", other.Name, host.Name, host.Field, host.Target)
				break
			}
		}
	}
	return r.findings
}

// checkGardenRecordNames checks the names of DNSRecords: the names in DNS with - instead of dots.
func checkGardenRecordNames(in ruleInput) []finding {
	r := &findingCollector{}
	types, providers := dnsProviderTypes(in.object), map[string]string{}
	ingress, virtual, dashboard, discovery := gardenDomains(in.object)
	for _, domain := range slices.Concat(ingress, virtual, []fieldValue{dashboard, discovery}) {
		providers[domain.lookup("name").path] = domain.lookup("provider").text()
	}
	known := map[string]GardenDNSName{}
	for _, name := range GardenDNSNames(in.object) {
		typ := types[providers[name.Field]]
		if !name.HasRecord || typ == "" {
			continue
		}
		record := strings.NewReplacer(".", "-", "*", "wildcard").Replace(name.Name) + "-" + typ
		other, taken := known[record]
		if !taken {
			known[record] = name
		} else if other.Name != name.Name {
			// one name has one DNSRecord, and other rules report the duplicate
			r.add(fieldValue{path: name.Field}, TypeDuplicate, "%q needs a DNSRecord named %s, which already belongs to %q (%s); choose another domain", name.Name, record, other.Name, other.Field)
		}
	}
	return r.findings
}

// dnsProviderTypes maps the DNS providers of a Garden to their types. A domain without a provider
// uses the first one.
func dnsProviderTypes(garden map[string]any) map[string]string {
	types := map[string]string{}
	for i, provider := range (fieldValue{value: garden}).lookup("spec", "dns", "providers").items() {
		if i == 0 {
			types[""] = provider.lookup("type").text()
		}
		types[provider.lookup("name").text()] = provider.lookup("type").text()
	}
	return types
}

// checkGardenHostLengths checks the lengths of names made of domains. The rule garden/domain-names
// checks the domains.
func checkGardenHostLengths(in ruleInput) []finding {
	r := &findingCollector{}
	const most = validation.DNS1123SubdomainMaxLength
	ingress, virtual, dashboard, discovery := gardenDomains(in.object)
	longest := map[string]string{}
	for _, host := range catalogueHosts(in.object) {
		if len(host.name) > len(longest[host.sourceField.path]) {
			longest[host.sourceField.path] = host.name
		}
	}
	types := dnsProviderTypes(in.object)
	check := func(domain fieldValue, record string) {
		name := domain.lookup("name")
		if len(name.text()) > most {
			return
		}
		for label := range strings.SplitSeq(name.text(), ".") {
			if len(label) > validation.DNS1123LabelMaxLength {
				r.add(name, TypeInvalid, "%q has %d characters; between two dots there are at most %d", label, len(label), validation.DNS1123LabelMaxLength)
			}
		}
		if host := longest[name.path]; len(host) > most {
			prefix, _, _ := strings.Cut(host, ".")
			r.add(name, TypeInvalid, "is too long: %s.DOMAIN has %d characters of at most %d", prefix, len(host), most)
			return
		}
		if typ := types[domain.lookup("provider").text()]; typ != "" && len(record)+len(name.text())+len("-")+len(typ) > most {
			r.add(name, TypeInvalid, "is too long: the name of its DNSRecord, %sDOMAIN-%s, has %d characters of at most %d", record, typ, len(record)+len(name.text())+len("-")+len(typ), most)
		}
	}
	for _, domain := range ingress {
		check(domain, "wildcard-")
	}
	for _, domain := range virtual {
		check(domain, "gardener-")
	}
	check(dashboard, "")
	check(discovery, "")
	return r.findings
}
