// SPDX-License-Identifier: Apache-2.0

package strict

import (
	"fmt"
	"maps"
	"net/netip"
	"regexp"
	"slices"
	"strings"

	"github.com/pergola-dev/pergola/schemas/fieldpath"
	"github.com/pergola-dev/pergola/schemas/structure"
)

// This file finds configuration of Istio that its definitions accept, but istiod or Envoy reject or
// never use.

// checkIstioFields checks the objects of Istio's APIs.
func checkIstioFields(kind string, object map[string]any) []structure.Finding {
	switch kind {
	case "VirtualService":
		return append(checkIstioValues(fieldpath.Path{"spec"}, object["spec"]), unreachableRoutes(object)...)
	case "DestinationRule", "ServiceEntry", "Sidecar":
		return checkIstioValues(fieldpath.Path{"spec"}, object["spec"])
	case "Gateway":
		return checkGatewayServers(object)
	case "AuthorizationPolicy":
		return checkAddressRanges(object)
	}
	return nil
}

// istioDurations are fields with durations; istioMaps are fields with arbitrary keys.
var (
	istioDurations = []string{
		"baseEjectionTime", "connectTimeout", "fixedDelay", "idleTimeout", "interval", "maxAge", "maxConnectionDuration", "perTryTimeout", "time", "timeout", "ttl",
	}
	istioMaps             = []string{"add", "labels", "set", "sourceLabels"}
	positiveNumberPattern = regexp.MustCompile(`^[0-9]*[1-9][0-9]*(\.[0-9]+)?$`)
)

// checkIstioValues finds durations without a unit and invalid regular expressions. Envoy uses RE2,
// as Go does.
func checkIstioValues(at fieldpath.Path, value any) []structure.Finding {
	var out []structure.Finding
	switch v := value.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			text, isText := v[name].(string)
			if !isText {
				if !slices.Contains(istioMaps, name) {
					out = append(out, checkIstioValues(at.Append(name), v[name])...)
				}
				continue
			}
			if slices.Contains(istioDurations, name) && positiveNumberPattern.MatchString(text) {
				out = append(out, structure.Finding{Path: at.Append(name), Type: "Invalid", Message: fmt.Sprintf("%q is not a duration; write a unit, such as %ss", text, text)})
			}
			if name != "regex" || strings.Contains(text, SymbolicMark) {
				continue
			}
			if _, err := regexp.Compile(text); err != nil {
				out = append(out, structure.Finding{Path: at.Append(name), Type: "Invalid", Message: "is not a regular expression: " + strings.TrimPrefix(err.Error(), "error parsing regexp: ")})
			}
		}
	case []any:
		for i, item := range v {
			out = append(out, checkIstioValues(at.Append(i), item)...)
		}
	}
	return out
}

// unreachableRoutes finds routes after a route that matches all requests.
func unreachableRoutes(object map[string]any) []structure.Finding {
	var out []structure.Finding
	for _, protocol := range []string{"http", "tcp"} {
		routes, _ := valueAt(object, fieldpath.Path{"spec", protocol}).([]any)
		for i, route := range routes {
			matches, _ := valueAt(route, fieldpath.Path{"match"}).([]any)
			if len(matches) == 0 && i < len(routes)-1 {
				out = append(out, structure.Finding{Path: fieldpath.Path{"spec", protocol, i}, Type: "Invalid", Message: "has no match and takes all requests: the routes below are never used; write it last"})
				break
			}
		}
	}
	return out
}

// checkGatewayServers checks that servers of a Gateway have a certificate if and only if they use
// one. Source: istio's pkg/config/validation, validateServer and validateTLSOptions.
func checkGatewayServers(object map[string]any) []structure.Finding {
	var out []structure.Finding
	list, _ := valueAt(object, fieldpath.Path{"spec", "servers"}).([]any)
	for i, server := range list {
		at := fieldpath.Path{"spec", "servers", i, "tls"}
		protocol, _ := valueAt(server, fieldpath.Path{"port", "protocol"}).(string)
		tls, given := valueAt(server, fieldpath.Path{"tls"}).(map[string]any)
		mode, _ := tls["mode"].(string)
		certificates := slices.ContainsFunc([]string{"credentialName", "credentialNames", "serverCertificate", "tlsCertificates"}, func(field string) bool { return tls[field] != nil })
		switch upper := strings.ToUpper(protocol); {
		case (upper == "HTTPS" || upper == "TLS") && !given:
			out = append(out, structure.Finding{Path: at, Type: "Required", Message: fmt.Sprintf("must be set for the protocol %s", protocol)})
		case (upper == "HTTP" || upper == "HTTP2" || upper == "GRPC") && (certificates || mode != "" && mode != "PASSTHROUGH"):
			out = append(out, structure.Finding{Path: at, Type: "Forbidden", Message: fmt.Sprintf("the protocol %s has no TLS besides httpsRedirect; write HTTPS", protocol)})
		case (mode == "SIMPLE" || mode == "MUTUAL") && !certificates:
			out = append(out, structure.Finding{Path: at.Append("credentialName"), Type: "Required", Message: fmt.Sprintf("must be set for the mode %s, or serverCertificate", mode)})
		}
	}
	return out
}

// checkAddressRanges checks the addresses of an AuthorizationPolicy.
func checkAddressRanges(object map[string]any) []structure.Finding {
	var out []structure.Finding
	check := func(at fieldpath.Path, value any) {
		blocks, _ := value.([]any)
		for i, block := range blocks {
			text, _ := block.(string)
			_, noRange := netip.ParsePrefix(text)
			if _, noAddress := netip.ParseAddr(text); noRange != nil && noAddress != nil && !strings.Contains(text, SymbolicMark) {
				out = append(out, structure.Finding{Path: at.Append(i), Type: "Invalid", Message: fmt.Sprintf("%q is neither an address range such as 10.0.0.0/8 nor an address", text)})
			}
		}
	}
	rules, _ := valueAt(object, fieldpath.Path{"spec", "rules"}).([]any)
	for i, rule := range rules {
		sources, _ := valueAt(rule, fieldpath.Path{"from"}).([]any)
		for j, source := range sources {
			for _, field := range []string{"ipBlocks", "notIpBlocks", "remoteIpBlocks", "notRemoteIpBlocks"} {
				check(fieldpath.Path{"spec", "rules", i, "from", j, "source", field}, valueAt(source, fieldpath.Path{"source", field}))
			}
		}
		conditions, _ := valueAt(rule, fieldpath.Path{"when"}).([]any)
		for j, condition := range conditions {
			if key, _ := valueAt(condition, fieldpath.Path{"key"}).(string); slices.Contains([]string{"source.ip", "remote.ip", "destination.ip"}, key) {
				check(fieldpath.Path{"spec", "rules", i, "when", j, "values"}, valueAt(condition, fieldpath.Path{"values"}))
				check(fieldpath.Path{"spec", "rules", i, "when", j, "notValues"}, valueAt(condition, fieldpath.Path{"notValues"}))
			}
		}
	}
	return out
}
