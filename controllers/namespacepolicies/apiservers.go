// SPDX-License-Identifier: Apache-2.0

package namespacepolicies

import (
	"maps"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

// buildAPIServerRules allow egress to the API server: to the endpoints of its Service in namespace
// default, and to the addresses of its name. Ports are numbers, because some networks cannot
// resolve names.
func buildAPIServerRules(slicesOfService []*discoveryv1.EndpointSlice, named []netip.AddrPort) []networkingv1.NetworkPolicyEgressRule {
	slicesOfService = slices.SortedFunc(slices.Values(slicesOfService), func(a, b *discoveryv1.EndpointSlice) int { return strings.Compare(a.Name, b.Name) })
	var rules []networkingv1.NetworkPolicyEgressRule
	for _, slice := range slicesOfService {
		var addresses []netip.Addr
		for _, endpoint := range slice.Endpoints {
			if ready := endpoint.Conditions.Ready; ready != nil && !*ready {
				continue
			}
			for _, text := range endpoint.Addresses {
				if address, err := netip.ParseAddr(text); err == nil { // otherwise it is a name
					addresses = append(addresses, address.Unmap().WithZone(""))
				}
			}
		}
		var ports []networkingv1.NetworkPolicyPort
		for _, p := range slice.Ports {
			if p.Port != nil {
				ports = append(ports, policyPort(ptr.Deref(p.Protocol, corev1.ProtocolTCP), *p.Port))
			}
		}
		rules = append(rules, egressRulesTo(addresses, ports)...)
	}
	byPort := map[uint16][]netip.Addr{}
	for _, n := range named {
		byPort[n.Port()] = append(byPort[n.Port()], n.Addr())
	}
	for _, port := range slices.Sorted(maps.Keys(byPort)) {
		rules = append(rules, egressRulesTo(byPort[port], []networkingv1.NetworkPolicyPort{policyPort(corev1.ProtocolTCP, int32(port))})...)
	}
	return rules
}

// egressRulesTo returns a rule to addresses, or none without addresses or ports, because it would
// allow everything.
func egressRulesTo(addresses []netip.Addr, ports []networkingv1.NetworkPolicyPort) []networkingv1.NetworkPolicyEgressRule {
	if len(addresses) == 0 || len(ports) == 0 {
		return nil
	}
	slices.SortFunc(addresses, netip.Addr.Compare)
	rule := networkingv1.NetworkPolicyEgressRule{Ports: ports}
	for _, a := range slices.Compact(addresses) {
		rule.To = append(rule.To, networkingv1.NetworkPolicyPeer{IPBlock: &networkingv1.IPBlock{CIDR: netip.PrefixFrom(a, a.BitLen()).String()}})
	}
	return []networkingv1.NetworkPolicyEgressRule{rule}
}

func policyPort(protocol corev1.Protocol, number int32) networkingv1.NetworkPolicyPort {
	return networkingv1.NetworkPolicyPort{Protocol: &protocol, Port: new(intstr.FromInt32(number))}
}
