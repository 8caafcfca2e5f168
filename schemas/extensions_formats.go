// SPDX-License-Identifier: Apache-2.0

package schemas

import (
	"net"
	"net/netip"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
)

func checkDNSAddresses(in ruleInput) []finding {
	r, spec := &findingCollector{}, fieldValue{value: in.object}.lookup("spec")
	if typ := spec.lookup("recordType").text(); typ == "A" || typ == "AAAA" {
		for _, value := range spec.lookup("values").items() {
			if net.ParseIP(value.text()) == nil {
				r.add(value, TypeInvalid, "%q is not an IP address such as 192.0.2.1 or 2001:db8::1", value.text())
			}
		}
	}
	return r.findings
}

func checkExtensionNetworks(in ruleInput) []finding {
	r, spec := &findingCollector{}, fieldValue{value: in.object}.lookup("spec")
	families := spec.lookup("ipFamilies").texts()
	var networks []network
	for _, name := range []string{"podCIDR", "serviceCIDR"} {
		field := spec.lookup(name)
		if field.text() == "" {
			continue // reported by extensions/required
		}
		prefix, err := netip.ParsePrefix(field.text())
		if err != nil {
			r.add(field, TypeInvalid, "%q is not a range of addresses such as 100.64.0.0/11", field.text())
			continue
		}
		r.requireCanonicalRange(field)
		six := len(families) == 1 && families[0] == "IPv6"
		if len(families) < 2 && prefix.Addr().Is6() != six {
			r.add(field, TypeInvalid, "the range %s is not of the IP family of spec.ipFamilies", field.text())
		}
		networks = append(networks, network{path: field.path, prefix: prefix.Masked()})
	}
	if len(networks) == 2 && (len(families) != 1 || families[0] != "IPv6") {
		return append(r.findings, findOverlaps(networks[:1], networks[1:])...)
	}
	return r.findings
}

var digitsPattern = regexp.MustCompile(`^\d+$`)

// hostProblem describes why a text is not a host with an optional port, or returns "".
func hostProblem(text string) string {
	host := text
	if i := strings.LastIndexByte(text, ':'); i >= 0 && digitsPattern.MatchString(text[i+1:]) {
		host = text[:i]
		if port, err := strconv.Atoi(text[i+1:]); err != nil || port < 1 || port > 65535 || text[i+1] == '0' {
			return "has a port that is not between 1 and 65535"
		}
	}
	if len(utilvalidation.IsDNS1123Subdomain(host)) > 0 {
		return "is not a host, with or without a port, such as registry.example.org:5000"
	}
	return ""
}

func checkContainerdRegistries(in ruleInput) []finding {
	r, seen := &findingCollector{}, map[string]bool{}
	config := fieldValue{value: in.object}.lookup("spec", "criConfig", "containerd")
	if (fieldValue{value: in.object}).lookup("spec", "purpose").text() == "provision" {
		return nil // no field of it is allowed
	}
	for _, registry := range config.lookup("registries").items() {
		upstream := registry.lookup("upstream")
		if seen[upstream.text()] {
			r.add(upstream, TypeDuplicate, "the registry %q is already listed", upstream.text())
		}
		seen[upstream.text()] = true
		if words := hostProblem(upstream.text()); words != "" && upstream.text() != "_default" {
			r.add(upstream, TypeInvalid, "%q %s", upstream.text(), words)
		}
		if server := registry.lookup("server"); server.isSet() {
			r.checkRegistryURL(server, true)
		}
		for _, host := range registry.lookup("hosts").items() {
			r.checkRegistryURL(host.lookup("url"), false)
		}
	}
	return r.findings
}

// checkRegistryURL checks the URL of a registry. Like upstream, it requires a scheme only for
// servers.
func (r *findingCollector) checkRegistryURL(field fieldValue, scheme bool) {
	parsed, err := url.Parse(field.text())
	if err != nil {
		r.add(field, TypeRequired, "%q is not a URL such as https://registry.example.org:5000", field.text())
		return
	}
	if scheme && parsed.Scheme != "http" && parsed.Scheme != "https" {
		r.add(field, TypeNotSupported, "%q must begin with \"http://\" or \"https://\"", field.text())
	}
	if parsed.Host == "" {
		r.add(field, TypeInvalid, "%q has no host; write it as https://registry.example.org:5000", field.text())
	}
}

func checkExposureAddresses(in ruleInput) []finding {
	r := &findingCollector{}
	for _, endpoint := range (fieldValue{value: in.object}).lookup("spec", "endpoints").items() {
		for _, address := range endpoint.lookup("addresses").items() {
			typ, field := address.lookup("type").text(), address.lookup("address")
			if (typ == "InternalIP" || typ == "ExternalIP") && field.text() != "" && net.ParseIP(field.text()) == nil {
				r.add(field, TypeInvalid, "%q is not an IP address such as 192.0.2.1 or 2001:db8::1", field.text())
			}
		}
	}
	return r.findings
}

func checkWorkerAmounts(in ruleInput) []finding {
	r := &findingCollector{}
	for _, pool := range (fieldValue{value: in.object}).lookup("spec", "pools").items() {
		capacity := pool.lookup("nodeTemplate", "capacity")
		for _, name := range capacity.keys() {
			r.checkResourceAmount(capacity.lookup(name), name)
		}
	}
	return r.findings
}
