// SPDX-License-Identifier: Apache-2.0

package networkpolicy

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	resourcesv1alpha1 "github.com/pergola-dev/pergola/api/resources/v1alpha1"
)

// exposure is a Service port that pods reach without a label.
type exposure struct {
	// via is viaIngress or viaIstio.
	via string
	// namespace and pods are those of the clients.
	namespace string
	pods      metav1.LabelSelector
	port      networkingv1.NetworkPolicyPort
}

// policySet has policies by name.
type policySet map[types.NamespacedName]*networkingv1.NetworkPolicy

// policies returns the policies that a Service asks for. clients returns the namespaces with pods
// that have the label of a rule.
func (t *serviceTraffic) policies(clients func(portRule) []string, exposures []exposure) policySet {
	set := policySet{}
	for _, r := range t.portRules {
		for _, namespace := range clients(r) {
			in, out := clientPolicyNames(t.key, r.id, namespace)
			label := r.localLabel
			if namespace != t.key.Namespace {
				label = r.foreignLabel
			}
			t.allow(set, in, out, metav1.LabelSelector{MatchLabels: map[string]string{label: labelAllowed}}, namespace, r.port)
		}
	}
	for _, e := range exposures {
		in, out := exposurePolicyNames(t.key, portID(t.key.Name, e.port), e.namespace, e.via)
		t.allow(set, in, out, e.pods, e.namespace, e.port)
	}
	if t.allowsWorld {
		set.add(t.newPolicy(worldPolicyName(t.key), fmt.Sprintf("Allows everybody to reach %s of the pods of Service %s.", formatPorts(t.worldPorts), t.key), networkingv1.NetworkPolicySpec{
			PodSelector: t.pods,
			PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress},
			Ingress:     []networkingv1.NetworkPolicyIngressRule{{Ports: t.worldPorts}},
		}))
	}
	return set
}

// allow adds the ingress and egress policies from pods of a namespace to a port of the Service.
func (t *serviceTraffic) allow(set policySet, in, out types.NamespacedName, from metav1.LabelSelector, namespace string, port networkingv1.NetworkPolicyPort) {
	client, server := networkingv1.NetworkPolicyPeer{PodSelector: &from}, networkingv1.NetworkPolicyPeer{PodSelector: &t.pods}
	if namespace != t.key.Namespace {
		client.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: namespace}}
		server.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: t.key.Namespace}}
	}
	ports := []networkingv1.NetworkPolicyPort{port}
	who, what := fmt.Sprintf("pods with %s in namespace %s", metav1.FormatLabelSelector(&from), namespace), formatPorts(ports)
	set.add(t.newPolicy(in, fmt.Sprintf("Allows the pods of Service %s to be reached at %s by %s.", t.key, what, who), networkingv1.NetworkPolicySpec{
		PodSelector: t.pods,
		PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress},
		Ingress:     []networkingv1.NetworkPolicyIngressRule{{From: []networkingv1.NetworkPolicyPeer{client}, Ports: ports}},
	}))
	set.add(t.newPolicy(out, fmt.Sprintf("Allows %s to reach %s of the pods of Service %s.", who, what, t.key), networkingv1.NetworkPolicySpec{
		PodSelector: from,
		PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeEgress},
		Egress:      []networkingv1.NetworkPolicyEgressRule{{To: []networkingv1.NetworkPolicyPeer{server}, Ports: ports}},
	}))
}

func (t *serviceTraffic) newPolicy(key types.NamespacedName, description string, spec networkingv1.NetworkPolicySpec) *networkingv1.NetworkPolicy {
	return &networkingv1.NetworkPolicy{
		TypeMeta: metav1.TypeMeta{APIVersion: networkingv1.SchemeGroupVersion.String(), Kind: "NetworkPolicy"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace:   key.Namespace,
			Name:        key.Name,
			Labels:      map[string]string{LabelServiceName: t.key.Name, LabelServiceNamespace: t.key.Namespace},
			Annotations: map[string]string{annotationDescription: description},
		},
		Spec: spec,
	}
}

// add adds a policy, or merges its rules into one of the same name. Labelled clients and Istio
// gateways of one namespace share a name, and would otherwise overwrite each other.
func (s policySet) add(p *networkingv1.NetworkPolicy) {
	key := types.NamespacedName{Namespace: p.Namespace, Name: p.Name}
	before, ok := s[key]
	if ok && !apiequality.Semantic.DeepEqual(before.Spec.PodSelector, p.Spec.PodSelector) {
		// Two gateways of one namespace: a policy has only one pod selector.
		sum := sha256.Sum256([]byte(metav1.FormatLabelSelector(&p.Spec.PodSelector)))
		p.Name += "-" + hex.EncodeToString(sum[:])[:hashDigits]
		key.Name = p.Name
		before, ok = s[key]
	}
	if !ok {
		s[key] = p
		return
	}
	changed := false
	for _, r := range p.Spec.Ingress {
		if !slices.ContainsFunc(before.Spec.Ingress, func(o networkingv1.NetworkPolicyIngressRule) bool { return apiequality.Semantic.DeepEqual(o, r) }) {
			before.Spec.Ingress, changed = append(before.Spec.Ingress, r), true
		}
	}
	for _, r := range p.Spec.Egress {
		if !slices.ContainsFunc(before.Spec.Egress, func(o networkingv1.NetworkPolicyEgressRule) bool { return apiequality.Semantic.DeepEqual(o, r) }) {
			before.Spec.Egress, changed = append(before.Spec.Egress, r), true
		}
	}
	if changed {
		before.Annotations[annotationDescription] += " " + p.Annotations[annotationDescription]
	}
}

// keys returns the names in order.
func (s policySet) keys() []types.NamespacedName { return sortedNames(maps.Keys(s)) }

// isUpToDate reports whether a live policy is as wanted. Its description only has to exist: it
// follows from the rest, and upstream words it differently.
func isUpToDate(live, wanted *networkingv1.NetworkPolicy) bool {
	return serviceOf(live) == serviceOf(wanted) && live.Annotations[annotationDescription] != "" && apiequality.Semantic.DeepEqual(live.Spec, wanted.Spec)
}

// serviceOf returns the Service that a policy names; the result is empty if it names none.
func serviceOf(p *networkingv1.NetworkPolicy) types.NamespacedName {
	key := types.NamespacedName{Namespace: p.Labels[LabelServiceNamespace], Name: p.Labels[LabelServiceName]}
	if key.Namespace == "" || key.Name == "" {
		return types.NamespacedName{}
	}
	return key
}

// isOwnPolicy reports whether a controller of this kind created a policy: the policy names its
// Service, or lost these labels after we wrote it. Other policies of Pergola have another label.
func isOwnPolicy(p *networkingv1.NetworkPolicy) bool {
	if serviceOf(p) != (types.NamespacedName{}) {
		return true
	}
	return p.Labels[resourcesv1alpha1.ManagedBy] == "" && slices.ContainsFunc(p.ManagedFields, func(e metav1.ManagedFieldsEntry) bool {
		return e.Manager == FieldManager && e.Operation == metav1.ManagedFieldsOperationApply
	})
}

func formatPorts(ports []networkingv1.NetworkPolicyPort) string {
	if len(ports) == 0 {
		return "all ports"
	}
	var parts []string
	for _, p := range ports {
		switch {
		case p.Port == nil:
			parts = append(parts, fmt.Sprintf("all ports (%s)", *p.Protocol))
		case p.EndPort != nil:
			parts = append(parts, fmt.Sprintf("ports %s to %d (%s)", p.Port, *p.EndPort, *p.Protocol))
		default:
			parts = append(parts, fmt.Sprintf("port %s (%s)", p.Port, *p.Protocol))
		}
	}
	return strings.Join(parts, ", ")
}
