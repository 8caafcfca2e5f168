// SPDX-License-Identifier: Apache-2.0

package services

import (
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	clocktesting "k8s.io/utils/clock/testing"
)

func TestSelectEndpoints(t *testing.T) {
	type endpoint struct {
		address                     string
		ready, serving, terminating *bool
	}
	for name, test := range map[string]struct {
		endpoints []endpoint
		want      []string
	}{
		"none":                        {},
		"unsaid is ready":             {[]endpoint{{address: "10.0.0.1"}}, []string{"10.0.0.1:8443"}},
		"ready goes before ending":    {[]endpoint{{"10.0.0.1", new(false), new(true), new(true)}, {"10.0.0.2", new(true), nil, nil}}, []string{"10.0.0.2:8443"}},
		"ending where none is ready":  {[]endpoint{{"10.0.0.1", new(false), new(true), new(true)}, {"10.0.0.2", new(false), new(false), new(false)}}, []string{"10.0.0.1:8443"}},
		"neither":                     {[]endpoint{{"10.0.0.1", new(false), new(true), new(false)}}, nil},
		"real goes before played":     {[]endpoint{{address: "239.0.0.1"}, {address: "10.0.0.1"}}, []string{"10.0.0.1:8443"}},
		"played where none is real":   {[]endpoint{{address: "239.0.0.1"}}, []string{"239.0.0.1:8443"}},
		"ending and real is not next": {[]endpoint{{address: "239.0.0.1"}, {"10.0.0.1", new(false), new(true), new(true)}}, []string{"239.0.0.1:8443"}},
	} {
		s := slice("web", map[string]int{"https": 8443, "other": 1})
		for _, e := range test.endpoints {
			s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{Addresses: []string{e.address},
				Conditions: discoveryv1.EndpointConditions{Ready: e.ready, Serving: e.serving, Terminating: e.terminating}})
		}
		var got []string
		for _, e := range selectEndpoints([]*discoveryv1.EndpointSlice{s, s}, tcpPort("https", 443)) {
			got = append(got, e.String())
		}
		assert.Equal(t, test.want, got, name)
	}
}

func TestBalancer(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Now())
	a, b := netip.MustParseAddrPort("10.0.0.1:1"), netip.MustParseAddrPort("10.0.0.2:1")
	me, other := netip.MustParseAddr("10.1.0.1"), netip.MustParseAddr("10.1.0.2")
	balancer := &balancer{clock: clock}
	assert.Empty(t, balancer.candidates(me))
	balancer.set([]netip.AddrPort{a, b}, 0)
	assert.Equal(t, []netip.AddrPort{a, b}, balancer.candidates(me))
	assert.Equal(t, []netip.AddrPort{b, a}, balancer.candidates(me))
	assert.Equal(t, []netip.AddrPort{a, b}, balancer.candidates(me))

	balancer.set([]netip.AddrPort{a, b}, time.Minute)
	balancer.recordEndpoint(me, b)
	for range 3 {
		assert.Equal(t, b, balancer.candidates(me)[0], "who comes again gets the same")
	}
	first := balancer.candidates(other)[0]
	assert.NotEqual(t, first, balancer.candidates(other)[0])
	clock.SetTime(clock.Now().Add(2 * time.Minute))
	assert.NotEqual(t, balancer.candidates(me)[0], balancer.candidates(me)[0], "who was long away does not")
	balancer.recordEndpoint(me, b)
	balancer.set([]netip.AddrPort{a}, time.Minute)
	assert.Equal(t, []netip.AddrPort{a}, balancer.candidates(me), "an endpoint that is gone is no one's")
}

func TestAddressPool(t *testing.T) {
	p := addressPool{prefix: netip.MustParsePrefix("10.9.0.0/29")}
	first, err := p.allocate("ns/a")
	require.NoError(t, err)
	again, err := p.allocate("ns/a")
	require.NoError(t, err)
	assert.Equal(t, first, again)
	seen := map[netip.Addr]bool{first: true}
	for _, key := range []string{"ns/b", "ns/c", "ns/d", "ns/e", "ns/f"} {
		got, err := p.allocate(key)
		require.NoError(t, err)
		assert.False(t, seen[got], "%s is given twice", got)
		assert.True(t, p.prefix.Contains(got))
		seen[got] = true
	}
	_, err = p.allocate("ns/g")
	require.ErrorIs(t, err, errFull)
	assert.False(t, p.claim(first, "ns/g"))
	p.releaseAddresses("ns/a", netip.Addr{})
	got, err := p.allocate("ns/g")
	require.NoError(t, err)
	assert.Equal(t, first, got)
	assert.False(t, p.claim(netip.MustParseAddr("10.10.0.1"), "ns/g"), "out of the range")
}

func TestLoadBalancerAddresses(t *testing.T) {
	balanced := func(name string, change func(*corev1.Service)) *corev1.Service {
		s := service(name, "127.0.88.1", tcpPort("", 80))
		s.Spec.Type = corev1.ServiceTypeLoadBalancer
		change(s)
		return s
	}
	ingress := func(ip string) corev1.ServiceStatus {
		return corev1.ServiceStatus{LoadBalancer: corev1.LoadBalancerStatus{Ingress: []corev1.LoadBalancerIngress{{IP: ip}}}}
	}
	w := newWorld(t, Options{LoadBalancers: netip.MustParsePrefix("10.9.0.0/24"), LoadBalancerClasses: []string{"ours"}})
	w.apply(
		balanced("has", func(s *corev1.Service) { s.Status = ingress("10.9.0.7") }),
		balanced("wishes", func(s *corev1.Service) { s.Spec.LoadBalancerIP = "10.9.0.8" }),
		balanced("foreign-address", func(s *corev1.Service) { s.Status = ingress("239.128.0.1") }),
		balanced("ours", func(s *corev1.Service) { s.Spec.LoadBalancerClass = new("ours") }),
		balanced("theirs", func(s *corev1.Service) { s.Spec.LoadBalancerClass = new("theirs") }),
		balanced("failing", func(s *corev1.Service) { s.Annotations = map[string]string{failAnnotation: "no address"} }),
	)
	ip := func(name string) string {
		s, err := w.kube.CoreV1().Services("ns").Get(t.Context(), name, metav1.GetOptions{})
		require.NoError(t, err)
		if len(s.Status.LoadBalancer.Ingress) == 0 {
			return ""
		}
		return s.Status.LoadBalancer.Ingress[0].IP
	}
	within := func(name string) func() bool {
		return func() bool {
			got, err := netip.ParseAddr(ip(name))
			return err == nil && w.controller.LoadBalancers.Contains(got)
		}
	}
	for _, name := range []string{"wishes", "foreign-address", "ours"} {
		require.Eventually(t, within(name), 15*time.Second, 10*time.Millisecond, name)
	}
	assert.Equal(t, "10.9.0.7", ip("has"))
	assert.Equal(t, "10.9.0.8", ip("wishes"))
	assert.Empty(t, ip("theirs"))
	assert.Empty(t, ip("failing"))
	assert.NotEqual(t, ip("ours"), ip("foreign-address"))
}

func TestRoutes(t *testing.T) {
	object := func(namespace, name string, spec map[string]any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"namespace": namespace, "name": name}, "spec": spec}}
	}
	gateway := object("shoot", "kube-apiserver", map[string]any{
		"selector": map[string]any{"app": "gateway"},
		"servers": []any{map[string]any{
			"hosts": []any{"api.one.example", "*.wild.example"}, "port": map[string]any{"number": int64(9443), "protocol": "HTTPS"},
		}},
	})
	to := func(host string) []any {
		return []any{map[string]any{"destination": map[string]any{"host": host, "port": map[string]any{"number": int64(443)}}}}
	}
	services := []*unstructured.Unstructured{
		object("shoot", "terminated", map[string]any{
			"hosts": []any{"api.one.example", "elsewhere.example"}, "gateways": []any{"kube-apiserver"},
			"http": []any{
				map[string]any{"match": []any{map[string]any{"headers": map[string]any{}}}, "route": to("kube-apiserver-connection-upgrade.shoot.svc.cluster.local")},
				map[string]any{"route": to("kube-apiserver.shoot.svc.cluster.local")},
			},
		}),
		object("other", "wild", map[string]any{"hosts": []any{"*"}, "gateways": []any{"shoot/kube-apiserver"}, "tls": []any{
			map[string]any{"match": []any{map[string]any{"sniHosts": []any{"*.wild.example"}}}, "route": to("short")},
			map[string]any{"match": []any{map[string]any{"sniHosts": []any{"exact.wild.example"}}}, "route": to("two.parts")},
			map[string]any{"match": []any{map[string]any{"sniHosts": []any{"port.wild.example"}, "port": int64(1)}}, "route": to("never")},
		}}),
		object("other", "not-mine", map[string]any{"hosts": []any{"api.one.example"}, "gateways": []any{"kube-apiserver"}, "tls": []any{
			map[string]any{"match": []any{map[string]any{"sniHosts": []any{"api.one.example"}}}, "route": to("never")},
		}}),
	}
	s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "istio", Name: "gateway"}, Spec: corev1.ServiceSpec{Selector: map[string]string{"app": "gateway", "more": "x"}}}
	port := corev1.ServicePort{Port: 443, TargetPort: intstr.FromInt32(9443)}
	routes := routesOf(s, port, []*unstructured.Unstructured{gateway}, services)
	for name, want := range map[string]string{
		"api.one.example":     "shoot/kube-apiserver",
		"API.one.example":     "shoot/kube-apiserver",
		"elsewhere.example":   "/",
		"exact.wild.example":  "parts/two",
		"a.wild.example":      "other/short",
		"wild.example":        "/",
		"port.wild.example":   "other/short",
		"foreign.example.org": "/",
	} {
		got, _ := findRoute(routes, name)
		assert.Equal(t, want, got.key(), name)
	}
	assert.Empty(t, routesOf(s, corev1.ServicePort{Port: 8132}, []*unstructured.Unstructured{gateway}, services), "no gateway knows the port")
	s.Spec.Selector = map[string]string{"app": "web"}
	assert.Empty(t, routesOf(s, port, []*unstructured.Unstructured{gateway}, services), "not the Service of the gateway")
}
