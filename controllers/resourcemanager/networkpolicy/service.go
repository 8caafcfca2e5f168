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

// target is what a Service says about the traffic to its pods.
type target struct {
	key types.NamespacedName
	uid types.UID
	// pods are those of the Service.
	pods metav1.LabelSelector
	// rules are the ports that labelled pods may reach, sorted.
	rules []rule
	// namespaces are the selectors of those where clients may be besides the namespace of the
	// Service.
	namespaces []labels.Selector
	// open says that everybody may reach some ports, world which; none are all.
	open  bool
	world []networkingv1.NetworkPolicyPort
	// problems are annotations that cannot be read: what they ask for is not known.
	problems []problem
	// blind says that it is not known which pods the Service is for.
	blind bool
	// source is what all this was read from.
	source source
}

// rule is a port that pods with a label may reach.
type rule struct {
	// id stands for the port, and the alias if there is one, in the names of policies.
	id   string
	port networkingv1.NetworkPolicyPort
	// local is the label of clients in the namespace of the Service, foreign that of others.
	local, foreign string
}

// source is the part of a Service that policies depend on.
type source struct {
	Selector    map[string]string
	Ports       []corev1.ServicePort
	Annotations map[string]string
}

// readTarget reads a Service; nil means that it asks for no policy. Ports and protocols have
// defaults, as from an API server.
func readTarget(service *corev1.Service) *target {
	if service.DeletionTimestamp != nil {
		return nil
	}
	t := &target{key: types.NamespacedName{Namespace: service.Namespace, Name: service.Name}, uid: service.UID, source: sourceOf(service)}
	if !t.readPods(service) {
		return nil
	}
	t.readNamespaces(service)
	infix := service.Namespace
	if alias, ok := service.Annotations[AnnotationNamespaceAlias]; ok {
		infix = alias
	}
	for _, p := range service.Spec.Ports {
		port := networkPolicyPort(p)
		id := idOf(service.Name, port)
		t.addRule(id, id, infix, port)
	}
	for _, key := range slices.Sorted(maps.Keys(service.Annotations)) {
		alias, ok := aliasOf(key)
		if !ok {
			continue
		}
		ports, err := readPorts(service.Annotations[key], true)
		if err != nil {
			t.problem(key, err)
			continue
		}
		for _, port := range ports {
			t.addRule(idOf(service.Name, port)+"-via-"+alias, alias, infix, port)
		}
	}
	slices.SortStableFunc(t.rules, func(a, b rule) int { return strings.Compare(a.id, b.id) })
	if text, ok := service.Annotations[AnnotationFromWorld]; ok {
		ports, err := readPorts(text, false)
		if err != nil {
			t.problem(AnnotationFromWorld, err)
		} else {
			t.open, t.world = true, ports
		}
	}
	return t
}

// readPods reads which pods the Service is for; false if it does not say.
func (t *target) readPods(service *corev1.Service) bool {
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
		// Whom to allow traffic to is not known: nothing is made, and nothing taken away.
		t.problem(AnnotationPodSelector, err)
		t.blind = true
	}
	return true
}

func (t *target) readNamespaces(service *corev1.Service) {
	text, ok := service.Annotations[AnnotationNamespaceSelectors]
	if !ok {
		return
	}
	var selectors []metav1.LabelSelector
	if err := json.Unmarshal([]byte(text), &selectors); err != nil {
		t.problem(AnnotationNamespaceSelectors, err)
		return
	}
	for i := range selectors {
		selector, err := metav1.LabelSelectorAsSelector(&selectors[i])
		if err != nil {
			t.problem(AnnotationNamespaceSelectors, fmt.Errorf("selector %d: %w", i+1, err))
			continue
		}
		t.namespaces = append(t.namespaces, selector)
	}
}

// selects tells whether clients may be in another namespace.
func (t *target) selects(namespace labels.Set) bool {
	return slices.ContainsFunc(t.namespaces, func(s labels.Selector) bool { return s.Matches(namespace) })
}

// problem is why a Service cannot have what it asks for.
type problem struct {
	// reason is that of the event.
	reason string
	// about is the annotation or the policy. Events of a Service that have it in common are counted
	// and not told apart.
	about string
	text  string
}

func (t *target) problem(annotation string, err error) {
	t.problems = append(t.problems, problem{reasonAnnotation, strings.TrimPrefix(annotation, prefix), fmt.Sprintf("annotation %s: %v", annotation, err)})
}

func (t *target) addRule(id, what, infix string, port networkingv1.NetworkPolicyPort) {
	r := rule{id: id, port: port, local: ClientLabel(what), foreign: ClientLabel(infix + "-" + what)}
	// Two ports of a Service may lead to one port of its pods.
	if !slices.ContainsFunc(t.rules, func(o rule) bool { return o.id == r.id && apiequality.Semantic.DeepEqual(o.port, r.port) }) {
		t.rules = append(t.rules, r)
	}
}

// backendPort is the target port that an Ingress or VirtualService means; false if the Service has
// no such port.
func (t *target) backendPort(p networkingv1.ServiceBackendPort) (networkingv1.NetworkPolicyPort, bool) {
	for _, port := range t.source.Ports {
		if p.Name != "" && p.Name == port.Name || p.Name == "" && p.Number == port.Port {
			return networkPolicyPort(port), true
		}
	}
	return networkingv1.NetworkPolicyPort{}, false
}

// aliasOf is the alias in the name of an annotation that lists ports for it.
func aliasOf(annotation string) (string, bool) {
	rest, ok := strings.CutPrefix(annotation, AnnotationFromPrefix)
	if !ok {
		return "", false
	}
	alias, ok := strings.CutSuffix(rest, AnnotationFromSuffix)
	return alias, ok && alias != ""
}

// readPorts reads a list of target ports. The protocol is TCP if none is given, as in a
// NetworkPolicy.
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
			return nil, fmt.Errorf(`entry %d has no port: want such as {"protocol":"TCP","port":8080}`, i+1)
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

func sourceOf(service *corev1.Service) source {
	s := source{Selector: service.Spec.Selector, Ports: service.Spec.Ports}
	for key, value := range service.Annotations {
		if strings.HasPrefix(key, prefix) {
			if s.Annotations == nil {
				s.Annotations = map[string]string{}
			}
			s.Annotations[key] = value
		}
	}
	return s
}
