package schemas

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// gardenHost is a host name that the gateway of a Garden serves.
type gardenHost struct {
	// from is the field that the name is made of or written in.
	from tree
	name string
	// behind is the target of the name.
	behind string
}

// domainsOf returns the domains from which a Garden makes names, and the own domains of dashboard
// and discovery server.
func domainsOf(garden map[string]any) (ingress, virtual []tree, dashboard, discovery tree) {
	spec := tree{value: garden}.at("spec")
	return spec.at("runtimeCluster", "ingress", "domains").items(), spec.at("virtualCluster", "dns", "domains").items(),
		gardenComponent(garden, "gardenerDashboard").at("domain"), gardenComponent(garden, "gardenerDiscoveryServer").at("domain")
}

// madeHosts returns the names that the catalogue makes of the domains (components/garden).
func madeHosts(garden map[string]any) []gardenHost {
	ingress, virtual, dashboard, discovery := domainsOf(garden)
	var hosts []gardenHost
	add := func(domain tree, behind string, prefixes ...string) {
		name := domain.at("name")
		for _, prefix := range prefixes {
			if name.text() != "" {
				hosts = append(hosts, gardenHost{from: name, name: prefix + "." + name.text(), behind: behind})
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
		if i == 0 && gardenComponent(garden, "gardenerDiscoveryServer").set() && !discovery.set() {
			add(domain, "the discovery server", "discovery")
		}
		if gardenComponent(garden, "gardenerDashboard").set() && !dashboard.set() {
			add(domain, "the dashboard", "dashboard")
		}
	}
	return hosts
}

// gardenHosts checks that every name has one target, because the gateway routes by name.
func gardenHosts(in ruleInput) []finding {
	r := &report{}
	known := map[string]gardenHost{}
	for _, host := range madeHosts(in.object) {
		known[host.name] = host
	}
	_, _, dashboard, discovery := domainsOf(in.object)
	for _, host := range []gardenHost{
		{from: dashboard.at("name"), name: dashboard.at("name").text(), behind: "the dashboard"},
		{from: discovery.at("name"), name: discovery.at("name").text(), behind: "the discovery server"},
	} {
		if host.name == "" {
			continue
		}
		if other, taken := known[host.name]; taken {
			r.add(host.from, TypeDuplicate, "%q leads to %s already, by %s; choose another name for %s", host.name, other.behind, other.from.path, host.behind)
			continue
		}
		known[host.name] = host
	}
	return r.findings
}

// GardenName is a name of a Garden in DNS.
type GardenName struct {
	// Name has no trailing dot. A leading *. makes it cover all names right below it that have no
	// record of their own.
	Name string
	// Field is the field that the name is made of or written in; Behind is its target.
	Field, Behind string
	// Record reports whether DNS has the name. Otherwise a name with a leading *. covers it.
	Record bool
}

// GardenNames returns the names that a Garden has in DNS, and the names below its ingress domains
// that it serves.
func GardenNames(garden map[string]any) []GardenName {
	var names []GardenName
	add := func(field tree, name, behind string, record bool) {
		if field.text() != "" {
			names = append(names, GardenName{Name: strings.ToLower(strings.TrimSuffix(name, ".")), Field: field.path, Behind: behind, Record: record})
		}
	}
	ingress, virtual, dashboard, discovery := domainsOf(garden)
	below := map[string]bool{}
	for _, domain := range ingress {
		name := domain.at("name")
		below[name.text()] = true
		add(name, "*."+name.text(), "what is behind the ingress domain", true)
	}
	made := map[string]bool{}
	for _, domain := range virtual {
		made[domain.at("name").path] = true
	}
	for _, host := range madeHosts(garden) {
		add(host.from, host.name, host.behind, made[host.from.path])
	}
	for behind, domain := range map[string]tree{"the dashboard": dashboard, "the discovery server": discovery} {
		name := domain.at("name")
		_, parent, _ := strings.Cut(name.text(), ".")
		add(name, name.text(), behind, !below[parent])
	}
	slices.SortFunc(names, func(a, b GardenName) int { return cmp.Or(cmp.Compare(a.Field, b.Field), cmp.Compare(a.Name, b.Name)) })
	return names
}

// gardenNamesReached reports names that hide others: a record with a leading *. covers no name that
// exists, and a name exists if another one is below it.
func gardenNamesReached(in ruleInput) []finding {
	r := &report{}
	names := GardenNames(in.object)
	for _, host := range names {
		if host.Record {
			continue
		}
		for _, other := range names {
			if other.Record && strings.HasSuffix(other.Name, "."+host.Name) {
				r.add(tree{path: other.Field}, TypeInvalid, "DNS has %q then, which is below %q: *.DOMAIN of %s leads to %s there no longer; choose a name that is not below it", other.Name, host.Name, host.Field, host.Behind)
				break
			}
		}
	}
	return r.findings
}

// gardenRecordNames checks the names of DNSRecords: the names in DNS with - instead of dots.
func gardenRecordNames(in ruleInput) []finding {
	r := &report{}
	types, providers := dnsTypes(in.object), map[string]string{}
	ingress, virtual, dashboard, discovery := domainsOf(in.object)
	for _, domain := range slices.Concat(ingress, virtual, []tree{dashboard, discovery}) {
		providers[domain.at("name").path] = domain.at("provider").text()
	}
	known := map[string]GardenName{}
	for _, name := range GardenNames(in.object) {
		typ := types[providers[name.Field]]
		if !name.Record || typ == "" {
			continue
		}
		record := strings.NewReplacer(".", "-", "*", "wildcard").Replace(name.Name) + "-" + typ
		other, taken := known[record]
		if !taken {
			known[record] = name
		} else if other.Name != name.Name {
			// one name has one DNSRecord, and other rules report the duplicate
			r.add(tree{path: name.Field}, TypeDuplicate, "%q needs a DNSRecord called %s, which is that of %q already (%s): there would be one for both; choose another domain", name.Name, record, other.Name, other.Field)
		}
	}
	return r.findings
}

// dnsTypes maps the DNS providers of a Garden to their types. A domain without a provider uses the
// first one.
func dnsTypes(garden map[string]any) map[string]string {
	types := map[string]string{}
	for i, provider := range (tree{value: garden}).at("spec", "dns", "providers").items() {
		if i == 0 {
			types[""] = provider.at("type").text()
		}
		types[provider.at("name").text()] = provider.at("type").text()
	}
	return types
}

// gardenHostLengths checks the lengths of names made of domains. The rule garden/domain-names
// checks the domains.
func gardenHostLengths(in ruleInput) []finding {
	r := &report{}
	const most = validation.DNS1123SubdomainMaxLength
	ingress, virtual, dashboard, discovery := domainsOf(in.object)
	longest := map[string]string{}
	for _, host := range madeHosts(in.object) {
		if len(host.name) > len(longest[host.from.path]) {
			longest[host.from.path] = host.name
		}
	}
	types := dnsTypes(in.object)
	check := func(domain tree, record string) {
		name := domain.at("name")
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
		if typ := types[domain.at("provider").text()]; typ != "" && len(record)+len(name.text())+len("-")+len(typ) > most {
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
