// SPDX-License-Identifier: Apache-2.0

package networkpolicy

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestIngressControllerPolicies(t *testing.T) {
	s := newTestEnv(t)
	controller := s.ns + "-controller"
	s.start(func(o *Options) {
		o.IngressControllerSelector = &IngressControllerSelector{Namespace: controller, PodSelector: metav1.LabelSelector{MatchLabels: map[string]string{"app": "nginx"}}}
	})
	s.service("web", nil, port(80, 8080), port(81, 8081))
	s.create(`{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: web, namespace: NS}, spec: {rules: [{http: {paths: [
		{path: /a, pathType: Prefix, backend: {service: {name: web, port: {name: p80}}}}]}}]}}`)
	s.waitForPolicies("NS/ingress-to-web-tcp-8080-from-ingress-controller")

	// The namespace of the controller is created later.
	s.newNamespace("controller")
	out := controller + "/egress-to-NS-web-tcp-8080-from-ingress-controller"
	s.eventually("its pods may go out", func() bool {
		p := s.policy(out)
		return p != nil && p.Spec.PodSelector.MatchLabels["app"] == "nginx" && p.Spec.Egress[0].To[0].NamespaceSelector.MatchLabels[corev1.LabelMetadataName] == s.ns
	})
	in := s.policy("NS/ingress-to-web-tcp-8080-from-ingress-controller")
	assert.Equal(t, controller, in.Spec.Ingress[0].From[0].NamespaceSelector.MatchLabels[corev1.LabelMetadataName])

	ingress := &networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: "web"}}
	s.patch(ingress, `{"spec":{"rules":[{"http":{"paths":[{"path":"/a","pathType":"Prefix","backend":{"service":{"name":"web","port":{"number":81}}}}]}}]}}`)
	s.waitForPolicies("NS/ingress-to-web-tcp-8081-from-ingress-controller")
	s.eventually("the old one goes", func() bool { return s.policy(out) == nil })
	s.delete(ingress)
	s.waitForPolicies()
}

const istioDefinition = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: KIND.networking.istio.io}
spec:
  group: networking.istio.io
  names: {kind: NAME, listKind: NAMEList, plural: KIND}
  scope: Namespaced
  versions:
  - {name: v1beta1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, x-kubernetes-preserve-unknown-fields: true}}}}}
`

// installIstio creates the definitions of Istio; the function deletes them.
func (s *testEnv) installIstio() (leave func()) {
	s.Helper()
	var made []*unstructured.Unstructured
	for kind, name := range map[string]string{"virtualservices": "VirtualService", "gateways": "Gateway"} {
		made = append(made, s.create(replaceAll(istioDefinition, "KIND", kind, "NAME", name)))
	}
	leave = func() {
		for _, o := range made {
			require.NoError(s, client.IgnoreNotFound(s.api.Delete(s.ctx, o)))
			s.eventually("the definition goes", func() bool {
				return apierrors.IsNotFound(s.api.Get(s.ctx, client.ObjectKeyFromObject(o), o.DeepCopy()))
			})
		}
	}
	s.Cleanup(leave)
	for _, o := range made {
		s.eventually("the kind is served", func() bool {
			list := &unstructured.UnstructuredList{}
			name, _, _ := unstructured.NestedString(o.Object, "spec", "names", "kind")
			list.SetAPIVersion(istioAPI)
			list.SetKind(name + "List")
			return s.api.List(s.ctx, list) == nil
		})
	}
	return leave
}

func TestIstioGatewayPolicies(t *testing.T) {
	s := newTestEnv(t)
	stop := s.start()
	s.service("web", nil, port(80, 8080))
	s.pod(s.ns, "client", "web-tcp-8080")
	s.waitForPolicies(localPolicies...)

	// Istio is installed while the controller runs.
	leave := s.installIstio()
	s.create(`{apiVersion: networking.istio.io/v1beta1, kind: VirtualService, metadata: {name: web, namespace: NS}, spec: {hosts: [web.example.com], gateways: [mesh, OTHER/gate],
		tls: [{match: [{sniHosts: [web.example.com]}], route: [{destination: {host: web.NS.svc.cluster.local, port: {number: 80}}}]}],
		http: [{route: [{destination: {host: elsewhere.example.com, port: {number: 80}}}, {destination: {host: web.OTHER.svc.cluster.local, port: {number: 80}}}]}]}}`)
	gateway := s.create(`{apiVersion: networking.istio.io/v1beta1, kind: Gateway, metadata: {name: gate, namespace: OTHER}, spec: {selector: {app: gate-NS}}}`)
	pod := s.pod(s.other, "gate-"+s.ns)
	istio := []string{"NS/ingress-to-web-tcp-8080-from-OTHER", "OTHER/egress-to-NS-web-tcp-8080-from-istio"}
	s.waitForPolicies(concat(localPolicies, istio)...)
	in := s.policy(istio[0])
	assert.Equal(t, map[string]string{"app": "gate-" + s.ns}, in.Spec.Ingress[0].From[0].PodSelector.MatchLabels)
	assert.Equal(t, map[string]string{"app": "gate-" + s.ns}, s.policy(istio[1]).Spec.PodSelector.MatchLabels)

	// After a restart, nothing is deleted or written before all inputs are read.
	for _, kind := range []string{"pods", "namespaces", "services", "virtualservices", "gateways", "customresourcedefinitions"} {
		stop()
		s.requests.takeCounts()
		release := s.requests.block(kind)
		stop = s.start()
		s.eventually("the rest is read", func() bool {
			return s.requests.count("WATCH networkpolicies") > 0 && s.requests.count("WATCH "+kind)+s.requests.count("GET "+kind) > 0
		})
		assert.Never(t, func() bool {
			return s.requests.count("DELETE networkpolicies")+s.requests.count("PATCH networkpolicies") > 0
		}, 300*time.Millisecond, 10*time.Millisecond, "without "+kind)
		release()
		s.createSentinelService(s.newNamespace(kind))
		requests := s.requests.takeCounts()
		assert.Equal(t, 1, requests["PATCH networkpolicies"])
		assert.Zero(t, requests["DELETE networkpolicies"])
	}

	s.delete(pod)
	s.waitForPolicies(localPolicies...)
	s.pod(s.ns, "gate-"+s.ns)
	same := []string{"NS/ingress-to-web-tcp-8080-from-istio", "NS/egress-to-web-tcp-8080-from-istio"}
	s.waitForPolicies(concat(localPolicies, same)...)
	s.patch(gateway, `{"spec":{"selector":{"app":"nobody"}}}`)
	s.waitForPolicies(localPolicies...)
	s.patch(gateway, `{"spec":{"selector":{"app":"gate-NS"}}}`)
	s.waitForPolicies(concat(localPolicies, same)...)

	leave()
	s.waitForPolicies(localPolicies...)
	stop()
}

func TestReadVirtualService(t *testing.T) {
	for name, c := range map[string]struct {
		spec string
		want virtualService
	}{
		"nothing": {spec: `{}`},
		"three protocols": {
			spec: `{gateways: [own, other/theirs, mesh], http: [{route: [{destination: {host: a.ns.svc.cluster.local, port: {number: 1}}}, {destination: {host: b.ns.svc.cluster.local, port: {number: 2}}}]}],
tls: [{route: [{destination: {host: c.ns.svc.cluster.local, port: {number: 3}}}]}], tcp: [{route: [{destination: {host: d.ns.svc.cluster.local, port: {number: 4}}}]}]}`,
			want: virtualService{backends: []backend{backendOf("a", 1), backendOf("b", 2), backendOf("c", 3), backendOf("d", 4)}, gateways: []types.NamespacedName{key("ns", "own"), key("other", "theirs")}},
		},
		"what is no port of a Service of its namespace": {spec: `{http: [x, {route: 1}, {route: [1, {}, {destination: {host: a.ns.svc.cluster.local}}, {destination: {host: a, port: {number: 1}}},
{destination: {host: a.ns.svc.example.com, port: {number: 1}}}, {destination: {host: x.a.ns.svc.cluster.local, port: {number: 1}}}, {destination: {host: a.other.svc.cluster.local, port: {number: 1}}},
{destination: {host: a.ns.svc.cluster.local, port: {number: 70000}}}, {destination: {host: a.ns.svc.cluster.local, port: {number: one}}}]}]}`},
	} {
		t.Run(name, func(t *testing.T) {
			o := &unstructured.Unstructured{Object: *read[map[string]any](t, "metadata: {namespace: ns}\nspec: "+c.spec)}
			integers(o.Object)
			assert.Equal(t, &c.want, readVirtualService(o))
		})
	}
	assert.Nil(t, readVirtualService(nil))
}

func backendOf(service string, port int32) backend {
	return backend{service: key("ns", service), port: networkingv1.ServiceBackendPort{Number: port}}
}

// integers converts whole numbers to the type that a client returns.
func integers(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			v[k] = integers(e)
		}
	case []any:
		for i, e := range v {
			v[i] = integers(e)
		}
	case float64:
		return int64(v)
	}
	return v
}
