// SPDX-License-Identifier: Apache-2.0

package schemas

import "strings"

// extensionsGoRules lists the Go rules of the kinds of extensions.gardener.cloud, with the reason
// why each is not in CUE.
func extensionsGoRules() []goRule {
	rule := func(kind, name, title, doc, file string, check func(ruleInput) []finding) goRule {
		return goRule{Rule: Rule{ID: folderExtensions + "." + strings.ToLower(kind) + "/" + name, Kind: folderExtensions + "." + kind, Title: title, Doc: doc,
			Source: "pkg/api/extensions/validation/" + file, Language: "go", Severity: SeverityError, Scope: scopeObject}, check: check}
	}
	return []goRule{
		rule("DNSRecord", "addresses", "Values of an A or AAAA record are IP addresses",
			"The rule is in Go because upstream accepts every form that Go reads.", "dnsrecord.go", checkDNSAddresses).withFields("spec.values"),
		rule("Network", "ranges", "Pods and services of a network have ranges of its IP family that do not overlap",
			"With both families each range may be of either. The rule is in Go because CUE has no arithmetic on addresses.", "network.go", checkExtensionNetworks).withFields("spec.podCIDR", "spec.serviceCIDR"),
		rule("OperatingSystemConfig", "registries", "Registries are mirrored once, by hosts with a URL",
			"An upstream is a host with or without a port, or _default. The rule is in Go because URLs are parsed.", "operatingsystemconfig.go", checkContainerdRegistries).withFields("spec.criConfig.containerd.registries"),
		rule("SelfHostedShootExposure", "addresses", "IP addresses of an endpoint are valid",
			"The rule is in Go because the API server's own function decides.", "selfhostedshootexposure.go", checkExposureAddresses).withFields("spec.endpoints.addresses.address"),
		rule("Worker", "amounts", "The capacity of nodes is not negative, and whole where the resource is counted",
			"The rule is in Go because CUE has no arithmetic on quantities.", "worker.go", checkWorkerAmounts).withFields("spec.pools.nodeTemplate"),
	}
}
