// SPDX-License-Identifier: Apache-2.0

package networkpolicy

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
)

// serviceTraffic is the traffic that a Service asks for.
type serviceTraffic struct {
	key types.NamespacedName
	uid types.UID
	// pods selects the pods of the Service.
	pods metav1.LabelSelector
	// portRules are the ports that labelled pods may reach, sorted.
	portRules []portRule
	// namespaces select where clients may be, besides the namespace of the Service.
	namespaces []labels.Selector
	// allowsWorld says that everyone may reach the ports in world, or all if it is empty.
	allowsWorld bool
	worldPorts  []networkingv1.NetworkPolicyPort
	// problems are invalid annotations: their content is unknown.
	problems []problem
	// hasUnknownPods says that the pods of the Service are unknown.
	hasUnknownPods bool
	// inputs is the input of all other fields.
	inputs policyInputs
}

// portRule is a port that pods with a label may reach.
type portRule struct {
	// id identifies the port, and the alias if there is one, in the names of policies.
	id   string
	port networkingv1.NetworkPolicyPort
	// localLabel is the label of clients in the namespace of the Service; foreignLabel is that of
	// others.
	localLabel, foreignLabel string
}

// policyInputs is the part of a Service that determines its policies.
type policyInputs struct {
	Selector    map[string]string
	Ports       []corev1.ServicePort
	Annotations map[string]string
}

// readServiceTraffic reads a Service; nil means that it asks for no policy. Ports and protocols get
// the defaults of an API server.
func readServiceTraffic(service *corev1.Service) *serviceTraffic {
	if service.DeletionTimestamp != nil {
		return nil
	}
	t := &serviceTraffic{key: types.NamespacedName{Namespace: service.Namespace, Name: service.Name}, uid: service.UID, inputs: policyInputsOf(service)}
	if !t.readPodSelector(service) {
		return nil
	}
	t.readNamespaces(service)
	infix := service.Namespace
	if alias, ok := service.Annotations[AnnotationNamespaceAlias]; ok {
		infix = alias
	}
	for _, p := range service.Spec.Ports {
		port := networkPolicyPort(p)
		id := portID(service.Name, port)
		t.addRule(id, id, infix, port)
	}
	for _, key := range slices.Sorted(maps.Keys(service.Annotations)) {
		alias, ok := aliasOf(key)
		if !ok {
			continue
		}
		ports, err := readPorts(service.Annotations[key], true)
		if err != nil {
			t.addProblem(key, err)
			continue
		}
		for _, port := range ports {
			t.addRule(portID(service.Name, port)+"-via-"+alias, alias, infix, port)
		}
	}
	slices.SortStableFunc(t.portRules, func(a, b portRule) int { return strings.Compare(a.id, b.id) })
	if text, ok := service.Annotations[AnnotationFromWorld]; ok {
		ports, err := readPorts(text, false)
		if err != nil {
			t.addProblem(AnnotationFromWorld, err)
		} else {
			t.allowsWorld, t.worldPorts = true, ports
		}
	}
	return t
}

// readPodSelector reads the pod selector of a Service, or false if it has none.
func (t *serviceTraffic) readPodSelector(service *corev1.Service) bool {
	text, ok := service.Annotations[AnnotationPodSelector]
	if !ok {
		t.pods = metav1.LabelSelector{MatchLabels: service.Spec.Selector}
		return len(service.Spec.Selector) > 0
	}
	err := json.Unmarshal([]byte(text), &t.pods)
	if err == nil {
		_, err = metav1.LabelSelectorAsSelector(&t.pods)
	}
	if err != nil {
		// The destination is unknown: no policy is created or deleted.
		t.addProblem(AnnotationPodSelector, err)
		t.hasUnknownPods = true
	}
	return true
}

func (t *serviceTraffic) readNamespaces(service *corev1.Service) {
	text, ok := service.Annotations[AnnotationNamespaceSelectors]
	if !ok {
		return
	}
	var selectors []metav1.LabelSelector
	if err := json.Unmarshal([]byte(text), &selectors); err != nil {
		t.addProblem(AnnotationNamespaceSelectors, err)
		return
	}
	for i := range selectors {
		selector, err := metav1.LabelSelectorAsSelector(&selectors[i])
		if err != nil {
			t.addProblem(AnnotationNamespaceSelectors, fmt.Errorf("selector %d: %w", i+1, err))
			continue
		}
		t.namespaces = append(t.namespaces, selector)
	}
}

// isClientNamespace reports whether clients may be in another namespace.
func (t *serviceTraffic) isClientNamespace(namespace labels.Set) bool {
	return slices.ContainsFunc(t.namespaces, func(s labels.Selector) bool { return s.Matches(namespace) })
}

// problem is a reason why a Service cannot have its policies.
type problem struct {
	// reason is the reason of the event.
	reason string
	// about is the annotation or the policy. Events of a Service that share it are counted
	// together.
	about string
	text  string
}

func (t *serviceTraffic) addProblem(annotation string, err error) {
	t.problems = append(t.problems, problem{reasonAnnotation, strings.TrimPrefix(annotation, apiPrefix), fmt.Sprintf("annotation %s: %v", annotation, err)})
}

func (t *serviceTraffic) addRule(id, what, infix string, port networkingv1.NetworkPolicyPort) {
	r := portRule{id: id, port: port, localLabel: ClientLabel(what), foreignLabel: ClientLabel(infix + "-" + what)}
	// Two ports of a Service may lead to one port of its pods.
	if !slices.ContainsFunc(t.portRules, func(o portRule) bool { return o.id == r.id && apiequality.Semantic.DeepEqual(o.port, r.port) }) {
		t.portRules = append(t.portRules, r)
	}
}

// backendPort returns the target port for an Ingress or VirtualService, or false if the Service has
// no such port.
func (t *serviceTraffic) backendPort(p networkingv1.ServiceBackendPort) (networkingv1.NetworkPolicyPort, bool) {
	for _, port := range t.inputs.Ports {
		if p.Name != "" && p.Name == port.Name || p.Name == "" && p.Number == port.Port {
			return networkPolicyPort(port), true
		}
	}
	return networkingv1.NetworkPolicyPort{}, false
}

// aliasOf returns the alias in the name of an annotation that lists its ports.
func aliasOf(annotation string) (string, bool) {
	rest, ok := strings.CutPrefix(annotation, AnnotationFromPrefix)
	if !ok {
		return "", false
	}
	alias, ok := strings.CutSuffix(rest, AnnotationFromSuffix)
	return alias, ok && alias != ""
}

// readPorts parses a list of target ports. The default protocol is TCP, as in a NetworkPolicy.
func readPorts(text string, named bool) ([]networkingv1.NetworkPolicyPort, error) {
	var ports []networkingv1.NetworkPolicyPort
	if err := json.Unmarshal([]byte(text), &ports); err != nil {
		return nil, fmt.Errorf(`want a list such as [{"protocol":"TCP","port":8080}]: %w`, err)
	}
	for i := range ports {
		if ports[i].Protocol == nil {
			ports[i].Protocol = new(corev1.ProtocolTCP)
		}
		if named && ports[i].Port == nil {
			return nil, fmt.Errorf(`entry %d has no port: want an entry such as {"protocol":"TCP","port":8080}`, i+1)
		}
	}
	return ports, nil
}

func networkPolicyPort(p corev1.ServicePort) networkingv1.NetworkPolicyPort {
	protocol, port := p.Protocol, p.TargetPort
	if protocol == "" {
		protocol = corev1.ProtocolTCP
	}
	return networkingv1.NetworkPolicyPort{Protocol: &protocol, Port: &port}
}

func policyInputsOf(service *corev1.Service) policyInputs {
	s := policyInputs{Selector: service.Spec.Selector, Ports: service.Spec.Ports}
	for key, value := range service.Annotations {
		if strings.HasPrefix(key, apiPrefix) {
			if s.Annotations == nil {
				s.Annotations = map[string]string{}
			}
			s.Annotations[key] = value
		}
	}
	return s
}
