// SPDX-License-Identifier: Apache-2.0

package schemas

import (
	"slices"
	"strings"
	"time"
)

// This file has the warnings about implausible values of a Garden; gorules_plausible.go lists them.

const minEtcdSize = 1 << 30

func checkEtcdSize(in ruleInput) []finding {
	r := &findingCollector{}
	for _, name := range []string{"main", "events"} {
		field := fieldValue{value: in.object}.lookup("spec", "virtualCluster", "etcd", name, "storage", "capacity")
		if size, ok := field.quantity(); ok && size.Sign() > 0 && size.CmpInt64(minEtcdSize) < 0 {
			r.add(field, TypeInvalid, "%v is less than 1Gi, which is soon full", field.value)
		}
	}
	return r.findings
}

func checkAllowedAmounts(in ruleInput) []finding {
	r := &findingCollector{}
	root := fieldValue{value: in.object}
	most := root.lookup("spec", "runtimeCluster", "settings", "verticalPodAutoscaler", "maxAllowed")
	for _, path := range []string{"kubernetes.kubeAPIServer", "gardener.gardenerAPIServer", "etcd.main", "etcd.events"} {
		least := root.lookup("spec", "virtualCluster").lookup(strings.Split(path, ".")...).lookup("autoscaling", "minAllowed")
		for _, name := range least.keys() {
			low, isLow := least.lookup(name).quantity()
			if high, isHigh := most.lookup(name).quantity(); isLow && isHigh && low.Cmp(high) > 0 {
				r.add(least.lookup(name), TypeInvalid, "%v is above %v of %s", least.lookup(name).value, most.lookup(name).value, most.lookup(name).path)
			}
		}
	}
	return r.findings
}

func checkDNSProvidersUsed(in ruleInput) []finding {
	r := &findingCollector{}
	used := map[string]bool{}
	var walk func(fieldValue)
	walk = func(t fieldValue) {
		for _, name := range t.keys() {
			if name == "provider" {
				used[t.lookup(name).text()] = true
			}
			walk(t.lookup(name))
		}
		for _, item := range t.items() {
			walk(item)
		}
	}
	root := fieldValue{value: in.object}.lookup("spec")
	walk(root.lookup("runtimeCluster", "ingress"))
	walk(root.lookup("virtualCluster", "dns"))
	walk(root.lookup("virtualCluster", "gardener"))
	for i, provider := range root.lookup("dns", "providers").items() {
		// domains without a provider use the first one
		if name := provider.lookup("name"); i > 0 && name.text() != "" && !used[name.text()] {
			r.add(name, TypeInvalid, "no domain of the Garden has the provider %q", name.text())
		}
	}
	return r.findings
}

func checkDashboardAddresses(in ruleInput) []finding {
	r := &findingCollector{}
	dashboard := gardenComponent(in.object, "gardenerDashboard")
	if url := dashboard.lookup("gitHub", "apiURL"); url.text() != "" && !strings.HasPrefix(strings.ToLower(url.text()), "https://") && !strings.HasPrefix(strings.ToLower(url.text()), "http://") {
		r.add(url, TypeInvalid, "%q is not a URL, such as https://api.github.com", url.text())
	}
	for _, scope := range dashboard.lookup("oidcConfig", "additionalScopes").items() {
		if strings.ContainsAny(scope.text(), ", ") {
			r.add(scope, TypeInvalid, "%q is one scope; write an item for each", scope.text())
		}
	}
	for _, host := range dashboard.lookup("terminal", "allowedHosts").items() {
		if strings.Contains(host.text(), "/") {
			r.add(host, TypeInvalid, "%q is not the name of a host, such as *.seed.example.com; write it without a scheme and a path", host.text())
		}
	}
	return r.findings
}

// maxPlausibleAdminExpiration is longer than anybody needs an admin kubeconfig.
const maxPlausibleAdminExpiration = 30 * 24 * time.Hour

func checkAdminKubeconfigExpiration(in ruleInput) []finding {
	r, server := &findingCollector{}, gardenComponent(in.object, "gardenerAPIServer")
	if most := server.lookup("shootAdminKubeconfigMaxExpiration"); most.isSet() {
		if duration, ok := most.duration(); ok && duration > maxPlausibleAdminExpiration {
			r.add(most, TypeInvalid, "%s: a kubeconfig with all rights on a Shoot cannot be revoked before it expires; the default is 24h", most.text())
		}
	}
	return r.findings
}

// checkServerCertificateNames reports certificates for names outside the domains of the virtual
// garden.
func checkServerCertificateNames(in ruleInput) []finding {
	r, virtual := &findingCollector{}, fieldValue{value: in.object}.lookup("spec", "virtualCluster")
	var domains []string
	for _, domain := range virtual.lookup("dns", "domains").items() {
		name := domain.text()
		if name == "" {
			name = domain.lookup("name").text()
		}
		domains = append(domains, name)
	}
	for _, pattern := range virtual.lookup("kubernetes", "kubeAPIServer", "sni", "domainPatterns").items() {
		name := strings.TrimPrefix(pattern.text(), "*.")
		if name != "" && len(domains) > 0 && !slices.ContainsFunc(domains, func(domain string) bool {
			return name == domain || strings.HasSuffix(name, "."+domain) || pattern.text() != name && strings.HasSuffix(domain, "."+name)
		}) {
			r.add(pattern, TypeInvalid, "%q is below no domain of the virtual garden (spec.virtualCluster.dns.domains: %s), so no client asks for it", pattern.text(), strings.Join(domains, ", "))
		}
	}
	return r.findings
}

// checkRemovedZones reports zones removed from a runtime cluster, where volumes of the garden may
// be.
func checkRemovedZones(in ruleInput) []finding {
	r := &findingCollector{}
	zones := func(object map[string]any) fieldValue {
		return fieldValue{value: object}.lookup("spec", "runtimeCluster", "provider", "zones")
	}
	now := zones(in.object)
	for _, zone := range zones(in.old).texts() {
		if !slices.Contains(now.texts(), zone) {
			r.add(now, TypeInvalid, "the zone %q is removed, but its volumes keep their pods in it; move them first", zone)
		}
	}
	return r.findings
}
