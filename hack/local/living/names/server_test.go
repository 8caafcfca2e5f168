// SPDX-License-Identifier: Apache-2.0

package names

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"
)

func records(t *testing.T, all ...*unstructured.Unstructured) dynamic.Interface {
	t.Helper()
	client := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{DNSRecords: "DNSRecordList"})
	for _, one := range all {
		_, err := client.Resource(DNSRecords).Namespace("ns").Create(t.Context(), one, metav1.CreateOptions{})
		require.NoError(t, err)
	}
	return client
}

func record(name, kind string, values ...any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "extensions.gardener.cloud/v1alpha1", "kind": "DNSRecord",
		"metadata": map[string]any{"namespace": "ns", "name": strings.ReplaceAll(name+kind, "*", "any")},
		"spec":     map[string]any{"name": name, "recordType": kind, "values": values},
	}}
}

func freeAddress(t *testing.T) netip.AddrPort {
	t.Helper()
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).AddrPort()
}

func start(t *testing.T, options Options, objects ...runtime.Object) *Server {
	t.Helper()
	options.Kube, options.Address = fake.NewClientset(objects...), freeAddress(t)
	options.Log = slog.New(slog.NewTextHandler(t.Output(), nil))
	s, err := New(options)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- s.Run(ctx) }()
	t.Cleanup(func() { cancel(); assert.NoError(t, <-ended) })
	return s
}

func ask(t *testing.T, s *Server, network, name string, kind uint16) *dns.Msg {
	t.Helper()
	var answer *dns.Msg
	require.Eventually(t, func() bool {
		var err error
		answer, _, err = (&dns.Client{Net: network, Timeout: time.Second}).Exchange(new(dns.Msg).SetQuestion(name, kind), s.Address.String())
		return err == nil
	}, 15*time.Second, 10*time.Millisecond)
	return answer
}

// answerText returns an answer as text: its code and its records.
func answerText(m *dns.Msg) string {
	all := []string{dns.RcodeToString[m.Rcode]}
	for _, r := range m.Answer {
		fields := strings.Split(r.String(), "\t")
		all = append(all, fields[3]+" "+fields[4])
	}
	return strings.Join(all, ", ")
}

func clusterObjects() []runtime.Object {
	meta := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "ns", Name: name} }
	tcp := new(corev1.ProtocolTCP)
	headlessMeta := meta("main-peer-1")
	headlessMeta.Labels = map[string]string{discoveryv1.LabelServiceName: "main-peer"}
	webMeta := meta("web-1")
	webMeta.Labels = map[string]string{discoveryv1.LabelServiceName: "web"}
	return []runtime.Object{
		&corev1.Service{ObjectMeta: meta("web"), Spec: corev1.ServiceSpec{ClusterIP: "10.2.0.5", ClusterIPs: []string{"10.2.0.5"},
			Ports: []corev1.ServicePort{{Name: "https", Port: 443, Protocol: corev1.ProtocolTCP}}}},
		&corev1.Service{ObjectMeta: meta("main-peer"), Spec: corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone, ClusterIPs: []string{corev1.ClusterIPNone}}},
		&corev1.Service{ObjectMeta: meta("empty"), Spec: corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone}},
		&corev1.Service{ObjectMeta: meta("alias"), Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "api.one.example"}},
		&discoveryv1.EndpointSlice{ObjectMeta: headlessMeta, AddressType: discoveryv1.AddressTypeIPv4,
			Ports: []discoveryv1.EndpointPort{{Name: new("peer"), Port: new(int32(2380)), Protocol: tcp}},
			Endpoints: []discoveryv1.Endpoint{
				{Addresses: []string{"10.1.0.1"}, Hostname: new("main-0")},
				{Addresses: []string{"10.1.0.2"}, Conditions: discoveryv1.EndpointConditions{Ready: new(true)}},
				{Addresses: []string{"10.1.0.3"}, Hostname: new("main-2"), Conditions: discoveryv1.EndpointConditions{Ready: new(false)}},
			}},
		&discoveryv1.EndpointSlice{ObjectMeta: webMeta, AddressType: discoveryv1.AddressTypeIPv4,
			Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"10.1.0.9"}}}},
	}
}

func TestServerAnswers(t *testing.T) {
	sibling := NewRecords(records(t, record("api.other.example", "A", "10.9.0.2")), nil, slog.New(slog.DiscardHandler))
	sibling.isStale.Store(false)
	sibling.table = tableOf([]*unstructured.Unstructured{record("api.other.example", "A", "10.9.0.2")})
	ahead := NewRecords(records(t), nil, slog.New(slog.DiscardHandler))
	ahead.isStale.Store(false)
	ahead.table = tableOf([]*unstructured.Unstructured{record("server.one.example", "A", "10.9.0.7")})
	s := start(t, Options{PrioritySources: []Source{ahead}, FallbackSources: []Source{sibling}, Dynamic: records(t,
		record("api.one.example", "A", "10.9.0.1"),
		record("server.one.example", "A", "10.9.0.8"),
		record("www.one.example", "CNAME", "api.one.example"),
		record("cross.one.example", "CNAME", "api.other.example"),
		record("loop.one.example", "CNAME", "loop.one.example"),
		record("gone.one.example", "CNAME", "nowhere.example"),
		record("*.ingress.example", "A", "10.9.0.3"),
		record("own.ingress.example", "TXT", "text"),
	)}, clusterObjects()...)
	require.Eventually(t, func() bool {
		return answerText(ask(t, s, "udp", "api.one.example.", dns.TypeA)) == "NOERROR, A 10.9.0.1"
	}, 15*time.Second, 10*time.Millisecond)
	for _, test := range []struct {
		name string
		kind uint16
		want string
	}{
		{"web.ns.svc.cluster.local.", dns.TypeA, "NOERROR, A 10.2.0.5"},
		{"WEB.ns.svc.Cluster.local.", dns.TypeA, "NOERROR, A 10.2.0.5"},
		{"web.ns.svc.cluster.local.", dns.TypeAAAA, "NOERROR"},
		{"_https._tcp.web.ns.svc.cluster.local.", dns.TypeSRV, "NOERROR, SRV 0 100 443 web.ns.svc.cluster.local."},
		{"_tcp.web.ns.svc.cluster.local.", dns.TypeSRV, "NOERROR"},
		{"_https._udp.web.ns.svc.cluster.local.", dns.TypeSRV, "NXDOMAIN"},
		{"_nothing._tcp.web.ns.svc.cluster.local.", dns.TypeSRV, "NXDOMAIN"},
		{"10-1-0-9.web.ns.svc.cluster.local.", dns.TypeA, "NXDOMAIN"},
		{"main-peer.ns.svc.cluster.local.", dns.TypeA, "NOERROR, A 10.1.0.1, A 10.1.0.2"},
		{"main-0.main-peer.ns.svc.cluster.local.", dns.TypeA, "NOERROR, A 10.1.0.1"},
		{"main-0.main-peer.ns.svc.cluster.local.", dns.TypeAAAA, "NOERROR"},
		{"10-1-0-2.main-peer.ns.svc.cluster.local.", dns.TypeA, "NOERROR, A 10.1.0.2"},
		{"main-2.main-peer.ns.svc.cluster.local.", dns.TypeA, "NXDOMAIN"},
		{"_peer._tcp.main-peer.ns.svc.cluster.local.", dns.TypeSRV, "NOERROR, SRV 0 100 2380 main-0.main-peer.ns.svc.cluster.local., SRV 0 100 2380 10-1-0-2.main-peer.ns.svc.cluster.local."},
		{"empty.ns.svc.cluster.local.", dns.TypeA, "NOERROR"},
		{"alias.ns.svc.cluster.local.", dns.TypeA, "NOERROR, CNAME api.one.example., A 10.9.0.1"},
		{"ns.svc.cluster.local.", dns.TypeA, "NOERROR"},
		{"nothing.svc.cluster.local.", dns.TypeA, "NXDOMAIN"},
		{"svc.cluster.local.", dns.TypeA, "NOERROR"},
		{"nothing.ns.svc.cluster.local.", dns.TypeA, "NXDOMAIN"},
		{"api.one.example.ns.svc.cluster.local.", dns.TypeA, "NXDOMAIN"},
		{"dns-version.cluster.local.", dns.TypeTXT, `NOERROR, TXT "1.1.0"`},
		{"5.0.2.10.in-addr.arpa.", dns.TypePTR, "NOERROR, PTR web.ns.svc.cluster.local."},
		{"1.0.1.10.in-addr.arpa.", dns.TypePTR, "NOERROR, PTR main-0.main-peer.ns.svc.cluster.local."},
		{"9.0.1.10.in-addr.arpa.", dns.TypePTR, "NXDOMAIN"},
		{"www.one.example.", dns.TypeA, "NOERROR, CNAME api.one.example., A 10.9.0.1"},
		{"www.one.example.", dns.TypeCNAME, "NOERROR, CNAME api.one.example."},
		{"www.one.example.", dns.TypeAAAA, "NOERROR, CNAME api.one.example."},
		{"cross.one.example.", dns.TypeA, "NOERROR, CNAME api.other.example., A 10.9.0.2"},
		{"gone.one.example.", dns.TypeA, "NXDOMAIN, CNAME nowhere.example."},
		{"one.example.", dns.TypeA, "NOERROR"},
		{"a.ingress.example.", dns.TypeA, "NOERROR, A 10.9.0.3"},
		{"b.a.ingress.example.", dns.TypeA, "NOERROR, A 10.9.0.3"},
		{"own.ingress.example.", dns.TypeA, "NOERROR"},
		{"own.ingress.example.", dns.TypeTXT, `NOERROR, TXT "text"`},
		{"below.own.ingress.example.", dns.TypeA, "NXDOMAIN"},
		{"github.com.", dns.TypeA, "NXDOMAIN"},
	} {
		for _, network := range []string{"udp", "tcp"} {
			answer := ask(t, s, network, test.name, test.kind)
			assert.Equal(t, test.want, answerText(answer), "%s %s by %s", dns.TypeToString[test.kind], test.name, network)
			for _, r := range answer.Answer {
				assert.EqualValues(t, 5, r.Header().Ttl)
			}
			if len(answer.Answer) == 0 {
				require.Len(t, answer.Ns, 1, test.name)
				assert.EqualValues(t, 1, answer.Ns[0].(*dns.SOA).Minttl)
			}
		}
	}
	assert.Equal(t, dns.RcodeServerFailure, ask(t, s, "udp", "loop.one.example.", dns.TypeA).Rcode)
	refused := ask(t, s, "udp", "WEB.ns.svc.cluster.local.", dns.TypeA)
	assert.Equal(t, "WEB.ns.svc.cluster.local.", refused.Answer[0].Header().Name, "as the client wrote it")
}

func TestServiceChanges(t *testing.T) {
	client := records(t)
	s := start(t, Options{Dynamic: client})
	answers := func(name, want string) {
		t.Helper()
		require.Eventually(t, func() bool { return answerText(ask(t, s, "udp", name, dns.TypeA)) == want }, 15*time.Second, 10*time.Millisecond, want)
	}
	answers("api.one.example.", "NXDOMAIN")
	one := record("api.one.example", "A", "10.9.0.1")
	_, err := client.Resource(DNSRecords).Namespace("ns").Create(t.Context(), one, metav1.CreateOptions{})
	require.NoError(t, err)
	answers("api.one.example.", "NOERROR, A 10.9.0.1")
	require.NoError(t, client.Resource(DNSRecords).Namespace("ns").Delete(t.Context(), one.GetName(), metav1.DeleteOptions{}))
	answers("api.one.example.", "NXDOMAIN")
	assert.NotNil(t, s.Records())
}

func TestLongAnswersAreCutForUDP(t *testing.T) {
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "many"}, Spec: corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone}}
	slice := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "many-1", Labels: map[string]string{discoveryv1.LabelServiceName: "many"}}}
	for i := range 100 {
		slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{Addresses: []string{fmt.Sprintf("10.1.1.%d", i)}})
	}
	s := start(t, Options{}, service, slice)
	cut := ask(t, s, "udp", "many.ns.svc.cluster.local.", dns.TypeA)
	assert.True(t, cut.Truncated)
	whole := ask(t, s, "tcp", "many.ns.svc.cluster.local.", dns.TypeA)
	assert.False(t, whole.Truncated)
	assert.Len(t, whole.Answer, 100)
}

func TestUpstream(t *testing.T) {
	upstream := start(t, Options{Dynamic: records(t, record("github.com", "A", "10.9.9.9"))})
	require.Eventually(t, func() bool { return len(ask(t, upstream, "udp", "github.com.", dns.TypeA).Answer) == 1 }, 15*time.Second, 10*time.Millisecond)
	s := start(t, Options{Upstream: upstream.Address.String()})
	assert.Equal(t, "NOERROR, A 10.9.9.9", answerText(ask(t, s, "udp", "github.com.", dns.TypeA)))
	assert.Equal(t, "NXDOMAIN", answerText(ask(t, s, "udp", "nothing.ns.svc.cluster.local.", dns.TypeA)))
	dead := start(t, Options{Upstream: freeAddress(t).String()})
	assert.Equal(t, "SERVFAIL", answerText(ask(t, dead, "tcp", "github.com.", dns.TypeA)))
}

func TestBusyAddress(t *testing.T) {
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	s, err := New(Options{Kube: fake.NewClientset(), Address: listener.Addr().(*net.TCPAddr).AddrPort()})
	require.NoError(t, err)
	assert.ErrorContains(t, s.Run(t.Context()), "address already in use")
}

func TestParentName(t *testing.T) {
	var all []string
	for name := "a.b.c."; name != "."; name = parentName(name) {
		all = append(all, name)
	}
	assert.True(t, slices.Equal([]string{"a.b.c.", "b.c.", "c."}, all))
}
