// SPDX-License-Identifier: Apache-2.0

package networkpolicy

import (
	"strings"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// clusterDomain ends the names of Services, which VirtualServices must write in full.
	clusterDomain = ".svc.cluster.local"
	// meshGateway is not a gateway: it means every sidecar.
	meshGateway = "mesh"
)

// readVirtualService returns the gateways of a VirtualService and the Services of its own namespace
// that it leads to.
func readVirtualService(o client.Object) *virtualService {
	u, ok := o.(*unstructured.Unstructured)
	if !ok {
		return nil
	}
	v := &virtualService{}
	for _, protocol := range []string{"http", "tls", "tcp"} {
		for _, entry := range objectList(u.Object, "spec", protocol) {
			for _, route := range objectList(entry, "route") {
				if b, ok := readDestination(route); ok && b.service.Namespace == u.GetNamespace() {
					v.backends = append(v.backends, b)
				}
			}
		}
	}
	gateways, _, _ := unstructured.NestedStringSlice(u.Object, "spec", "gateways")
	for _, name := range gateways {
		if name == meshGateway {
			continue
		}
		key := types.NamespacedName{Namespace: u.GetNamespace(), Name: name}
		if namespace, rest, ok := strings.Cut(name, "/"); ok {
			key = types.NamespacedName{Namespace: namespace, Name: rest}
		}
		v.gateways = append(v.gateways, key)
	}
	return v
}

// readDestination reads a route to a Service port; it ignores other routes, as upstream does.
func readDestination(route map[string]any) (backend, bool) {
	host, _, _ := unstructured.NestedString(route, "destination", "host")
	name, ok := strings.CutSuffix(host, clusterDomain)
	if !ok {
		return backend{}, false
	}
	service, namespace, ok := strings.Cut(name, ".")
	port, has, err := unstructured.NestedInt64(route, "destination", "port", "number")
	if !ok || strings.Contains(namespace, ".") || !has || err != nil || port < 1 || port > 65535 {
		return backend{}, false
	}
	return backend{
		service: types.NamespacedName{Namespace: namespace, Name: service},
		port:    networkingv1.ServiceBackendPort{Number: int32(port)},
	}, true
}

// readGateway returns the pod labels of a gateway.
func readGateway(o client.Object) map[string]string {
	u, ok := o.(*unstructured.Unstructured)
	if !ok {
		return nil
	}
	match, _, _ := unstructured.NestedStringMap(u.Object, "spec", "selector")
	return match
}

// objectList returns the objects of a list; it ignores other elements.
func objectList(from map[string]any, path ...string) []map[string]any {
	list, _, _ := unstructured.NestedFieldNoCopy(from, path...)
	all, _ := list.([]any)
	var out []map[string]any
	for _, entry := range all {
		if o, ok := entry.(map[string]any); ok {
			out = append(out, o)
		}
	}
	return out
}
