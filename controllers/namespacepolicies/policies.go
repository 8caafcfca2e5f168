// SPDX-License-Identifier: Apache-2.0

package namespacepolicies

import (
	"fmt"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
)

const (
	// annotationDescription describes an object for users (upstream's).
	annotationDescription = "gardener.cloud/description"
	// LabelMadeBy names the role that manages a policy. Upstream's policies lack it.
	LabelMadeBy = "networking.pergola.dev/made-by"

	labelDNSPods = "k8s-app"
	// dnsAddressOffset is the offset of cluster DNS in the range of Services.
	dnsAddressOffset = 10
)

// Addresses of node-local DNS on nodes whose kube-proxy uses IPVS (upstream:
// pkg/component/networking/nodelocaldns/constants).
const (
	nodeLocalDNS4 = "169.254.20.10/32"
	nodeLocalDNS6 = "fd30:1319:f1e:230b::1/128"
)

// policyInputs are the inputs of a namespace's policies.
type policyInputs struct {
	networks *Networks
	// apiServerRules are rules to the cluster's API server; they are nil while its addresses are
	// unknown.
	apiServerRules []networkingv1.NetworkPolicyEgressRule
	// shoot has the networks of the Shoot whose control plane is in the namespace; unknown reports
	// that such a Shoot exists without known networks.
	shoot          []netip.Prefix
	isShootUnknown bool
}

// policySpec returns a policy, or nil while an input is unknown: the live policy then stays.
func (s *policyInputs) policySpec(name string) *networkingv1.NetworkPolicySpec {
	switch name {
	case policyDenyAll:
		return &networkingv1.NetworkPolicySpec{PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress}}
	case policyToAPIServer:
		if s.apiServerRules == nil {
			return nil
		}
		return egressSpec(gardencorev1beta1.LabelNetworkPolicyToRuntimeAPIServer, s.apiServerRules...)
	case policyToPublicNetworks:
		return egressSpec(gardencorev1beta1.LabelNetworkPolicyToPublicNetworks, ruleForPeers(peersOutside(allNetworks(), slices.Concat(privateNetworks(), s.networks.Blocked, s.networks.Cluster)))...)
	case policyToPrivateNetworks:
		if s.isShootUnknown {
			return nil
		}
		v4, v6 := peersOutside(privateNetworks(), slices.Concat(s.networks.Blocked, s.networks.Cluster, s.shoot))
		return egressSpec(gardencorev1beta1.LabelNetworkPolicyToPrivateNetworks, slices.Concat(ruleForPeers(v4, nil), ruleForPeers(v6, nil))...)
	case policyToBlockedRanges:
		var rules []networkingv1.NetworkPolicyEgressRule
		for _, r := range s.networks.Blocked {
			rules = append(rules, networkingv1.NetworkPolicyEgressRule{To: []networkingv1.NetworkPolicyPeer{{IPBlock: &networkingv1.IPBlock{CIDR: r.String()}}}})
		}
		return egressSpec(gardencorev1beta1.LabelNetworkPolicyToBlockedCIDRs, rules...)
	case policyToDNS:
		return egressSpec(gardencorev1beta1.LabelNetworkPolicyToDNS, networkingv1.NetworkPolicyEgressRule{To: s.dnsPeers(), Ports: dnsPorts()})
	}
	return nil
}

// egressSpec allows pods with a label to reach the targets of rules.
func egressSpec(label string, rules ...networkingv1.NetworkPolicyEgressRule) *networkingv1.NetworkPolicySpec {
	return &networkingv1.NetworkPolicySpec{
		PodSelector: metav1.LabelSelector{MatchLabels: map[string]string{label: gardencorev1beta1.LabelNetworkPolicyAllowed}},
		PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeEgress}, Egress: rules,
	}
}

// ruleForPeers returns a rule to peers of both families, or none without peers, because such a rule
// allows everything.
func ruleForPeers(v4, v6 []networkingv1.NetworkPolicyPeer) []networkingv1.NetworkPolicyEgressRule {
	to := slices.Concat(v4, v6)
	if len(to) == 0 {
		return nil
	}
	return []networkingv1.NetworkPolicyEgressRule{{To: to}}
}

// dnsPeers returns the pods and addresses of cluster DNS and node-local DNS.
func (s *policyInputs) dnsPeers() []networkingv1.NetworkPolicyPeer {
	var out []networkingv1.NetworkPolicyPeer
	for _, app := range []string{"kube-dns", "node-local-dns"} {
		out = append(out, networkingv1.NetworkPolicyPeer{
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: metav1.NamespaceSystem}},
			PodSelector:       &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: labelDNSPods, Operator: metav1.LabelSelectorOpIn, Values: []string{app}}}},
		})
	}
	ranges := []string{nodeLocalDNS4, nodeLocalDNS6}
	for _, services := range s.networks.Services {
		address := services.Addr()
		for range dnsAddressOffset {
			address = address.Next()
		}
		if services.Contains(address) {
			ranges = append(ranges, netip.PrefixFrom(address, address.BitLen()).String())
		}
	}
	for _, r := range ranges {
		out = append(out, networkingv1.NetworkPolicyPeer{IPBlock: &networkingv1.IPBlock{CIDR: r}})
	}
	return out
}

// dnsPorts returns the ports of the DNS Service and of its pods.
func dnsPorts() []networkingv1.NetworkPolicyPort {
	var out []networkingv1.NetworkPolicyPort
	for _, number := range []int32{53, 8053} {
		for _, protocol := range []corev1.Protocol{corev1.ProtocolUDP, corev1.ProtocolTCP} {
			out = append(out, networkingv1.NetworkPolicyPort{Protocol: &protocol, Port: new(intstr.FromInt32(number))})
		}
	}
	return out
}

// policyDescription describes a policy for users.
func policyDescription(name string) string {
	with := func(label, text string) string {
		return fmt.Sprintf("Pods with the label %s=%s may reach %s.", label, gardencorev1beta1.LabelNetworkPolicyAllowed, text)
	}
	switch name {
	case policyToAPIServer:
		return with(gardencorev1beta1.LabelNetworkPolicyToRuntimeAPIServer, "the API server of this cluster")
	case policyToPublicNetworks:
		return with(gardencorev1beta1.LabelNetworkPolicyToPublicNetworks, "public addresses, but not those of this cluster and blocked ones")
	case policyToPrivateNetworks:
		return with(gardencorev1beta1.LabelNetworkPolicyToPrivateNetworks, "private networks and carrier-grade NAT, but not the networks of this cluster and of the Shoot, and blocked ones")
	case policyToBlockedRanges:
		return with(gardencorev1beta1.LabelNetworkPolicyToBlockedCIDRs, "the ranges that are blocked for all others")
	case policyToDNS:
		return with(gardencorev1beta1.LabelNetworkPolicyToDNS, "the DNS of this cluster")
	}
	return "No pod may be reached or reach anything, unless another policy allows it."
}
