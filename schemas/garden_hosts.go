package schemas

import (
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// gardenHost is a name that the gateway of a Garden answers to.
type gardenHost struct {
	// from is the field that it is made of, or where it is written down.
	from tree
	name string
	// behind is what it leads to.
	behind string
}

// domainsOf gives the domains that a Garden makes names of, and those that dashboard and discovery server have for themselves.
func domainsOf(garden map[string]any) (ingress, virtual []tree, dashboard, discovery tree) {
	spec := tree{value: garden}.at("spec")
	return spec.at("runtimeCluster", "ingress", "domains").items(), spec.at("virtualCluster", "dns", "domains").items(),
		gardenComponent(garden, "gardenerDashboard").at("domain"), gardenComponent(garden, "gardenerDiscoveryServer").at("domain")
}

// madeHosts are the names that the catalogue makes of the domains (components/garden).
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

// gardenHosts: the gateway tells what is behind it apart by the name that is called.
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

// gardenHostLengths checks what is made of domains; what is no domain by itself is said by others (garden/domain-names).
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
	types := map[string]string{}
	for i, provider := range (tree{value: in.object}).at("spec", "dns", "providers").items() {
		if i == 0 {
			types[""] = provider.at("type").text() // a domain that names no provider has the first one
		}
		types[provider.at("name").text()] = provider.at("type").text()
	}
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
