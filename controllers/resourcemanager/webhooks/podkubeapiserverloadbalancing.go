// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"context"
	"fmt"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
	"github.com/pergola-dev/pergola/controllers/resourcemanager/networkpolicy"
)

const (
	// balancingConfigMap, in a namespace with an API server, has its hosts and the namespace of its
	// ingress gateway.
	balancingConfigMap = "istio-internal-load-balancing"
	balancingHosts     = "hosts"
	balancingNamespace = "istio-namespace"
	balancingService   = "istio-ingressgateway-internal"
	balancingPort      = 9443
	tokenKubeconfig    = "generic-token-kubeconfig"
)

// loadBalancing is the webhook that routes API requests of control plane pods through the ingress
// gateway, which balances requests instead of connections.
type loadBalancing struct{ target targetReader }

func (l loadBalancing) mutate(ctx context.Context, request *admissionv1.AdmissionRequest, pod *corev1.Pod) error {
	if !hasTokenKubeconfig(pod) {
		return nil
	}
	config := &corev1.ConfigMap{}
	err := l.target.cached.Get(ctx, objectKey(request.Namespace, balancingConfigMap), config)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading ConfigMap %s/%s: %w", request.Namespace, balancingConfigMap, err)
	}
	var hosts []string
	for host := range strings.SplitSeq(config.Data[balancingHosts], ",") {
		if host = strings.TrimSpace(host); host != "" {
			hosts = append(hosts, host)
		}
	}
	if len(hosts) == 0 {
		return fmt.Errorf("ConfigMap %s/%s has no hosts under key %s", request.Namespace, balancingConfigMap, balancingHosts)
	}
	namespace := config.Data[balancingNamespace]
	service := &corev1.Service{}
	if err := l.target.get(ctx, namespace, balancingService, service); err != nil {
		return fmt.Errorf("reading Service %s/%s of the ingress gateway: %w", namespace, balancingService, err)
	}
	addHostAliases(pod, hosts, namespace, service.Spec.ClusterIPs)
	return nil
}

// addHostAliases resolves hosts to the addresses of the gateway in a namespace, and allows traffic
// to it.
func addHostAliases(pod *corev1.Pod, hosts []string, namespace string, addresses []string) {
	for _, address := range addresses {
		alias := corev1.HostAlias{IP: address, Hostnames: hosts}
		// Two webhooks may receive the same pod.
		known := slices.ContainsFunc(pod.Spec.HostAliases, func(a corev1.HostAlias) bool { return a.IP == address && slices.Equal(a.Hostnames, hosts) })
		if address != "" && address != corev1.ClusterIPNone && !known {
			pod.Spec.HostAliases = append(pod.Spec.HostAliases, alias)
		}
	}
	if pod.Labels == nil {
		pod.Labels = map[string]string{}
	}
	pod.Labels[networkPolicyLabel(namespace+"-"+balancingService, balancingPort)] = gardencorev1beta1.LabelNetworkPolicyAllowed
}

// hasTokenKubeconfig reports whether a pod mounts the shared kubeconfig of a control plane.
func hasTokenKubeconfig(pod *corev1.Pod) bool {
	for _, volume := range pod.Spec.Volumes {
		if volume.Secret != nil && strings.HasPrefix(volume.Secret.SecretName, tokenKubeconfig) {
			return true
		}
		if volume.Projected == nil {
			continue
		}
		for _, source := range volume.Projected.Sources {
			if source.Secret != nil && strings.HasPrefix(source.Secret.Name, tokenKubeconfig) {
				return true
			}
		}
	}
	return false
}

// networkPolicyLabel returns the label that allows a pod to reach a port of a Service.
func networkPolicyLabel(service string, port int) string {
	return networkpolicy.ClientLabel(fmt.Sprintf("%s-tcp-%d", service, port))
}
