package schemas

import (
	"slices"
	"strings"
	"time"
)

// This file has the warnings about implausible values of a Garden; gorules_plausible.go lists them.

const leastEtcd = 1 << 30

func etcdSize(in ruleInput) []finding {
	r := &report{}
	for _, name := range []string{"main", "events"} {
		field := tree{value: in.object}.at("spec", "virtualCluster", "etcd", name, "storage", "capacity")
		if size, ok := field.quantity(); ok && size.Sign() > 0 && size.CmpInt64(leastEtcd) < 0 {
			r.add(field, TypeInvalid, "%v is less than 1Gi, which is soon full", field.value)
		}
	}
	return r.findings
}

func allowedAmounts(in ruleInput) []finding {
	r := &report{}
	root := tree{value: in.object}
	most := root.at("spec", "runtimeCluster", "settings", "verticalPodAutoscaler", "maxAllowed")
	for _, path := range []string{"kubernetes.kubeAPIServer", "gardener.gardenerAPIServer", "etcd.main", "etcd.events"} {
		least := root.at("spec", "virtualCluster").at(strings.Split(path, ".")...).at("autoscaling", "minAllowed")
		for _, name := range least.keys() {
			low, isLow := least.at(name).quantity()
			if high, isHigh := most.at(name).quantity(); isLow && isHigh && low.Cmp(high) > 0 {
				r.add(least.at(name), TypeInvalid, "%v is above %v of %s", least.at(name).value, most.at(name).value, most.at(name).path)
			}
		}
	}
	return r.findings
}

func dnsProvidersUsed(in ruleInput) []finding {
	r := &report{}
	used := map[string]bool{}
	var walk func(tree)
	walk = func(t tree) {
		for _, name := range t.keys() {
			if name == "provider" {
				used[t.at(name).text()] = true
			}
			walk(t.at(name))
		}
		for _, item := range t.items() {
			walk(item)
		}
	}
	root := tree{value: in.object}.at("spec")
	walk(root.at("runtimeCluster", "ingress"))
	walk(root.at("virtualCluster", "dns"))
	walk(root.at("virtualCluster", "gardener"))
	for i, provider := range root.at("dns", "providers").items() {
		// domains without a provider use the first one
		if name := provider.at("name"); i > 0 && name.text() != "" && !used[name.text()] {
			r.add(name, TypeInvalid, "no domain of the Garden has the provider %q", name.text())
		}
	}
	return r.findings
}

func dashboardAddresses(in ruleInput) []finding {
	r := &report{}
	dashboard := gardenComponent(in.object, "gardenerDashboard")
	if url := dashboard.at("gitHub", "apiURL"); url.text() != "" && !strings.HasPrefix(strings.ToLower(url.text()), "https://") && !strings.HasPrefix(strings.ToLower(url.text()), "http://") {
		r.add(url, TypeInvalid, "%q is no URL, such as https://api.github.com", url.text())
	}
	for _, scope := range dashboard.at("oidcConfig", "additionalScopes").items() {
		if strings.ContainsAny(scope.text(), ", ") {
			r.add(scope, TypeInvalid, "%q is one scope: write an item for each", scope.text())
		}
	}
	for _, host := range dashboard.at("terminal", "allowedHosts").items() {
		if strings.Contains(host.text(), "/") {
			r.add(host, TypeInvalid, "%q is no name of a host, such as *.seed.example.com: write it without a scheme and a path", host.text())
		}
	}
	return r.findings
}

// longAdmin is longer than anybody needs an admin kubeconfig.
const longAdmin = 30 * 24 * time.Hour

func adminExpiration(in ruleInput) []finding {
	r, server := &report{}, gardenComponent(in.object, "gardenerAPIServer")
	if most := server.at("shootAdminKubeconfigMaxExpiration"); most.set() {
		if duration, ok := most.duration(); ok && duration > longAdmin {
			r.add(most, TypeInvalid, "%s: nobody can take back a kubeconfig with all rights on a Shoot before it ends; the default is 24h", most.text())
		}
	}
	return r.findings
}

// serverNames reports certificates for names outside the domains of the virtual garden.
func serverNames(in ruleInput) []finding {
	r, virtual := &report{}, tree{value: in.object}.at("spec", "virtualCluster")
	var domains []string
	for _, domain := range virtual.at("dns", "domains").items() {
		name := domain.text()
		if name == "" {
			name = domain.at("name").text()
		}
		domains = append(domains, name)
	}
	for _, pattern := range virtual.at("kubernetes", "kubeAPIServer", "sni", "domainPatterns").items() {
		name := strings.TrimPrefix(pattern.text(), "*.")
		if name != "" && len(domains) > 0 && !slices.ContainsFunc(domains, func(domain string) bool {
			return name == domain || strings.HasSuffix(name, "."+domain) || pattern.text() != name && strings.HasSuffix(domain, "."+name)
		}) {
			r.add(pattern, TypeInvalid, "%q is below no domain of the virtual garden (spec.virtualCluster.dns.domains: %s), so that nobody asks for it", pattern.text(), strings.Join(domains, ", "))
		}
	}
	return r.findings
}

// lostZones reports zones removed from a runtime cluster, where volumes of the garden may be.
func lostZones(in ruleInput) []finding {
	r := &report{}
	zones := func(object map[string]any) tree {
		return tree{value: object}.at("spec", "runtimeCluster", "provider", "zones")
	}
	now := zones(in.object)
	for _, zone := range zones(in.old).texts() {
		if !slices.Contains(now.texts(), zone) {
			r.add(now, TypeInvalid, "the zone %q is taken away, and volumes that are there keep their pods in it: move these first", zone)
		}
	}
	return r.findings
}
