// SPDX-License-Identifier: Apache-2.0

package networkpolicy

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/types"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
)

// Names of the contract (upstream: pkg/apis/resources/v1alpha1).
const (
	apiPrefix = "networking.resources.gardener.cloud/"
	// LabelServiceName and LabelServiceNamespace on a policy name its Service.
	LabelServiceName      = apiPrefix + "service-name"
	LabelServiceNamespace = apiPrefix + "service-namespace"

	// AnnotationNamespaceSelectors of a Service is a JSON list of label selectors: clients may be
	// in namespaces that match one of them.
	AnnotationNamespaceSelectors = apiPrefix + "namespace-selectors"
	// AnnotationNamespaceAlias of a Service replaces its namespace in the label of clients in other
	// namespaces.
	AnnotationNamespaceAlias = apiPrefix + "pod-label-selector-namespace-alias"
	// AnnotationFromPrefix and AnnotationFromSuffix enclose an alias: pods with the label
	// `to-<alias>` may reach the target ports that the value lists as JSON.
	AnnotationFromPrefix = apiPrefix + "from-"
	AnnotationFromSuffix = "-allowed-ports"
	// AnnotationFromWorld of a Service is a JSON list of target ports that everyone may reach; an
	// empty list means all ports.
	AnnotationFromWorld = apiPrefix + "from-world-to-ports"
	// AnnotationPodSelector of a Service is a label selector as JSON that replaces the Service's
	// selector in policies. It is for Services that select one pod of several
	// (gardener/gardener#15661).
	AnnotationPodSelector = apiPrefix + "networkpolicy-pod-selector"

	// annotationDescription tells people the purpose of an object.
	annotationDescription = "gardener.cloud/description"

	labelPrefix  = gardencorev1beta1.LabelNetworkPolicyToPrefix
	labelAllowed = gardencorev1beta1.LabelNetworkPolicyAllowed

	// maxLabelName is the maximum length of a label key after the slash.
	maxLabelName = 63
	// hashDigits is the length of the hash that ends a shortened label.
	hashDigits = 5
)

// Ways to reach a Service without a label.
const (
	viaIngress = "ingress-controller"
	viaIstio   = "istio"
)

// ClientLabel returns the label that pods need to reach something, such as <service>-tcp-<port>.
// Its name is to-<what>; a hash replaces the end of a name that is too long.
func ClientLabel(what string) string {
	name := strings.TrimPrefix(labelPrefix, apiPrefix) + what
	if len(name) <= maxLabelName {
		return apiPrefix + name
	}
	sum := sha256.Sum256([]byte(name))
	return apiPrefix + name[:maxLabelName-hashDigits-1] + "-" + hex.EncodeToString(sum[:])[:hashDigits]
}

// portID returns the part of policy names that identifies a port of a Service.
func portID(service string, port networkingv1.NetworkPolicyPort) string {
	return service + "-" + strings.ToLower(string(*port.Protocol)) + "-" + port.Port.String()
}

// clientPolicyNames returns the policies that allow pods of a namespace to reach a port of a
// Service.
func clientPolicyNames(service types.NamespacedName, id, namespace string) (in, out types.NamespacedName) {
	in = types.NamespacedName{Namespace: service.Namespace, Name: "ingress-to-" + id}
	out = types.NamespacedName{Namespace: namespace, Name: "egress-to-" + id}
	if namespace != service.Namespace {
		in.Name += "-from-" + namespace
		out.Name = "egress-to-" + service.Namespace + "-" + id
	}
	return in, out
}

// exposurePolicyNames returns the policies that allow the ingress controller or an Istio gateway to
// reach a port of a Service.
func exposurePolicyNames(service types.NamespacedName, id, namespace, via string) (in, out types.NamespacedName) {
	in, out = clientPolicyNames(service, id, namespace)
	out.Name += "-from-" + via
	// Gateways run in several namespaces, the ingress controller in one.
	if via == viaIngress || namespace == service.Namespace {
		in.Name = "ingress-to-" + id + "-from-" + via
	}
	return in, out
}

// worldPolicyName returns the policy that allows everyone to reach ports of a Service.
func worldPolicyName(service types.NamespacedName) types.NamespacedName {
	return types.NamespacedName{Namespace: service.Namespace, Name: "ingress-to-" + service.Name + "-from-world"}
}
