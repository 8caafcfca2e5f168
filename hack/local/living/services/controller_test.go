// SPDX-License-Identifier: Apache-2.0

package services

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
)

// testServices is a running controller with a fake API server and real loopback addresses.
type testServices struct {
	t          *testing.T
	kube       kubernetes.Interface
	controller *Controller
	stop       func()
}

// The last network that a test uses: each run has its own addresses, so it need not wait.
var (
	lastTestNetwork   = byte(time.Now().UnixNano())
	lastTestNetworkMu sync.Mutex
)

func newTestNetwork() string {
	lastTestNetworkMu.Lock()
	defer lastTestNetworkMu.Unlock()
	lastTestNetwork++
	return fmt.Sprintf("127.%d.%d.", 100+lastTestNetwork%100, time.Now().UnixNano()/1000%250)
}

func newWorld(t *testing.T, options Options, istio ...*unstructured.Unstructured) *testServices {
	t.Helper()
	w := &testServices{t: t, kube: fake.NewClientset()}
	options.Kube, options.Log = w.kube, slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelDebug}))
	options.Dynamic = dynamicfake.NewSimpleDynamicClientWithCustomListKinds(kruntime.NewScheme(),
		map[schema.GroupVersionResource]string{gatewayResource: "GatewayList", virtualServiceResource: "VirtualServiceList"})
	for _, object := range istio {
		resource := map[string]schema.GroupVersionResource{"Gateway": gatewayResource, "VirtualService": virtualServiceResource}[object.GetKind()]
		_, err := options.Dynamic.Resource(resource).Namespace(object.GetNamespace()).Create(t.Context(), object, metav1.CreateOptions{})
		require.NoError(t, err)
	}
	c, err := New(options)
	require.NoError(t, err)
	w.controller = c
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { assert.NoError(t, c.Run(ctx)); close(ended) }()
	w.stop = func() { cancel(); <-ended }
	t.Cleanup(w.stop)
	return w
}

func service(name, ip string, ports ...corev1.ServicePort) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name},
		Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeClusterIP, ClusterIP: ip, Ports: ports},
	}
}

func tcpPort(name string, port int32) corev1.ServicePort {
	return corev1.ServicePort{Name: name, Port: port, Protocol: corev1.ProtocolTCP}
}

// slice returns a slice with an endpoint per address and the named ports.
func slice(service string, ports map[string]int, addresses ...string) *discoveryv1.EndpointSlice {
	s := &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: "ns", Name: service + "-1", Labels: map[string]string{discoveryv1.LabelServiceName: service}},
		AddressType: discoveryv1.AddressTypeIPv4,
	}
	for name, port := range ports {
		s.Ports = append(s.Ports, discoveryv1.EndpointPort{Name: new(name), Port: new(int32(port)), Protocol: new(corev1.ProtocolTCP)})
	}
	for _, address := range addresses {
		s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{Addresses: []string{address}, Conditions: discoveryv1.EndpointConditions{Ready: new(true)}})
	}
	return s
}

func (w *testServices) apply(objects ...any) {
	w.t.Helper()
	for _, object := range objects {
		var err error
		switch o := object.(type) {
		case *corev1.Service:
			if _, err = w.kube.CoreV1().Services(o.Namespace).Create(w.t.Context(), o, metav1.CreateOptions{}); err != nil {
				_, err = w.kube.CoreV1().Services(o.Namespace).Update(w.t.Context(), o, metav1.UpdateOptions{})
			}
		case *discoveryv1.EndpointSlice:
			if _, err = w.kube.DiscoveryV1().EndpointSlices(o.Namespace).Create(w.t.Context(), o, metav1.CreateOptions{}); err != nil {
				_, err = w.kube.DiscoveryV1().EndpointSlices(o.Namespace).Update(w.t.Context(), o, metav1.UpdateOptions{})
			}
		}
		require.NoError(w.t, err)
	}
}

// startEcho answers with its name and its input, once the client has closed its half.
func startEcho(t *testing.T, at, name string) (port int) {
	t.Helper()
	listener, err := net.Listen("tcp4", at+":0")
	require.NoError(t, err)
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				data, _ := io.ReadAll(conn)
				fmt.Fprintf(conn, "%s:%s", name, data)
			}()
		}
	}()
	return listener.Addr().(*net.TCPAddr).Port
}

// exchangeText sends a text, closes the sending half and returns the answer.
func exchangeText(at, text string) (string, error) {
	conn, err := net.DialTimeout("tcp4", at, 5*time.Second)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
	if _, err := io.WriteString(conn, text); err != nil {
		return "", err
	}
	if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
		return "", err
	}
	answer, err := io.ReadAll(conn)
	return string(answer), err
}

func (w *testServices) awaitAnswer(at, want string) {
	w.t.Helper()
	var last string
	require.Eventually(w.t, func() bool {
		answer, err := exchangeText(at, "hi")
		last = fmt.Sprint(answer, err)
		return err == nil && answer == want
	}, 15*time.Second, 10*time.Millisecond, "%s: want %s", at, want)
	_ = last
}

func (w *testServices) awaitRefused(at string) {
	w.t.Helper()
	require.Eventually(w.t, func() bool {
		_, err := exchangeText(at, "")
		return errors.Is(err, syscall.ECONNREFUSED)
	}, 15*time.Second, 10*time.Millisecond, at)
}

func TestForwardsToReadyEndpoints(t *testing.T) {
	w, ip := newWorld(t, Options{}), newTestNetwork()
	one, other := startEcho(t, ip+"1", "one"), startEcho(t, ip+"2", "other")
	s := service("web", ip+"10", tcpPort("http", 8080), tcpPort("alt", 8081))
	s.Spec.ExternalIPs = []string{ip + "11"}
	w.apply(s, slice("web", map[string]int{"http": one, "alt": other}, ip+"1"))
	// Each port name has its own number.
	w.awaitAnswer(ip+"10:8080", "one:hi")
	w.awaitAnswer(ip+"11:8080", "one:hi")
	behind, ok := w.controller.ServiceAt(netip.MustParseAddrPort(ip+"10:8080"), "")
	assert.Equal(t, "ns/web", behind)
	assert.True(t, ok)

	w.apply(slice("web", map[string]int{"http": one}))
	w.awaitRefused(ip + "10:8080")
	w.apply(slice("web", map[string]int{"http": one}, ip+"1"))
	w.awaitAnswer(ip+"10:8080", "one:hi")
	require.NoError(t, w.kube.CoreV1().Services("ns").Delete(t.Context(), "web", metav1.DeleteOptions{}))
	w.awaitRefused(ip + "10:8080")
	_, ok = w.controller.ServiceAt(netip.MustParseAddrPort(ip+"10:8080"), "")
	assert.False(t, ok)
}

func TestDeadEndpointsAreSkipped(t *testing.T) {
	w, ip := newWorld(t, Options{}), newTestNetwork()
	port := startEcho(t, ip+"2", "alive")
	w.apply(service("web", ip+"10", tcpPort("", 8080)), slice("web", map[string]int{"": port}, ip+"1", ip+"2", "239.1.2.3"))
	w.awaitAnswer(ip+"10:8080", "alive:hi")
	for range 10 {
		answer, err := exchangeText(ip+"10:8080", "x")
		require.NoError(t, err)
		assert.Equal(t, "alive:x", answer)
	}
	w.apply(slice("web", map[string]int{"": port}, "239.1.2.3"))
	require.Eventually(t, func() bool {
		_, err := exchangeText(ip+"10:8080", "")
		return errors.Is(err, syscall.ECONNRESET)
	}, 15*time.Second, 10*time.Millisecond, "Pods that are only played end a connection at once")
}

func TestKubernetesServiceGoesToTheAPIServer(t *testing.T) {
	ip := newTestNetwork()
	port := startEcho(t, ip+"1", "api")
	w := newWorld(t, Options{KubernetesEndpoint: netip.MustParseAddrPort(fmt.Sprintf("%s1:%d", ip, port))})
	s := service("kubernetes", ip+"10", tcpPort("https", 8443))
	s.Namespace = "default"
	w.apply(s)
	w.awaitAnswer(ip+"10:8443", "api:hi")
}

func TestBusyAddressIsRetried(t *testing.T) {
	w, ip := newWorld(t, Options{}), newTestNetwork()
	port := startEcho(t, ip+"1", "web")
	stranger, err := net.Listen("tcp4", ip+"10:8080")
	require.NoError(t, err)
	w.apply(service("web", ip+"10", tcpPort("", 8080), tcpPort("other", 8081)), slice("web", map[string]int{"": port, "other": port}, ip+"1"))
	w.awaitAnswer(ip+"10:8081", "web:hi")
	stranger.Close()
	w.awaitAnswer(ip+"10:8080", "web:hi")
}

func TestUDP(t *testing.T) {
	w, ip := newWorld(t, Options{}), newTestNetwork()
	server, err := net.ListenPacket("udp4", ip+"1:0")
	require.NoError(t, err)
	defer server.Close()
	go func() {
		packet := make([]byte, 100)
		for {
			n, from, err := server.ReadFrom(packet)
			if err != nil {
				return
			}
			_, _ = server.WriteTo([]byte("echo "+string(packet[:n])), from)
		}
	}()
	s := slice("dns", map[string]int{"": server.LocalAddr().(*net.UDPAddr).Port}, ip+"1")
	s.Ports[0].Protocol = new(corev1.ProtocolUDP)
	w.apply(service("dns", ip+"10", corev1.ServicePort{Port: 5353, Protocol: corev1.ProtocolUDP}), s)
	client, err := net.Dial("udp4", ip+"10:5353")
	require.NoError(t, err)
	defer client.Close()
	require.Eventually(t, func() bool {
		_, _ = client.Write([]byte("hi"))
		_ = client.SetReadDeadline(time.Now().Add(200 * time.Millisecond))
		packet := make([]byte, 100)
		n, err := client.Read(packet)
		return err == nil && string(packet[:n]) == "echo hi"
	}, 15*time.Second, 10*time.Millisecond)
}

func TestRunLeavesNothing(t *testing.T) {
	before := runtime.NumGoroutine()
	w, ip := newWorld(t, Options{}), newTestNetwork()
	listener, err := net.Listen("tcp4", ip+"1:0")
	require.NoError(t, err)
	port := listener.Addr().(*net.TCPAddr).Port
	w.apply(service("web", ip+"10", tcpPort("", 8080)), slice("web", map[string]int{"": port}, ip+"1"))
	var conn net.Conn
	require.Eventually(t, func() bool {
		conn, err = net.Dial("tcp4", ip+"10:8080")
		return err == nil
	}, 15*time.Second, 10*time.Millisecond)
	defer conn.Close()
	accepted, err := listener.Accept()
	require.NoError(t, err)
	w.stop()
	_, err = conn.Read(make([]byte, 1))
	assert.Error(t, err, "with the controller connections end")
	accepted.Close()
	listener.Close()
	_, err = net.DialTimeout("tcp4", ip+"10:8080", time.Second)
	assert.Error(t, err)
	require.Eventually(t, func() bool { return runtime.NumGoroutine() <= before+2 }, 10*time.Second, 10*time.Millisecond)
}

// TestGateway has two TLS servers behind the Service of a played ingress gateway.
func TestGateway(t *testing.T) {
	ip := newTestNetwork()
	object := func(kind, name string, spec map[string]any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "networking.istio.io/v1", "kind": kind, "metadata": map[string]any{"namespace": "ns", "name": name}, "spec": spec,
		}}
	}
	tlsRoute := func(host, to string) map[string]any {
		return map[string]any{
			"match": []any{map[string]any{"port": int64(8443), "sniHosts": []any{host}}},
			"route": []any{map[string]any{"destination": map[string]any{"host": to, "port": map[string]any{"number": int64(8443)}}}},
		}
	}
	w := newWorld(t, Options{LoadBalancers: netip.MustParsePrefix(ip + "128/25")},
		object("Gateway", "apiserver", map[string]any{"selector": map[string]any{"app": "gateway"}, "servers": []any{map[string]any{
			"hosts": []any{"*"}, "port": map[string]any{"number": int64(8443), "protocol": "TLS", "name": "tls"},
		}}}),
		object("VirtualService", "one", map[string]any{"hosts": []any{"api.one.example"}, "gateways": []any{"apiserver"}, "tls": []any{tlsRoute("api.one.example", "one.ns.svc.cluster.local")}}),
		object("VirtualService", "other", map[string]any{"hosts": []any{"*.example"}, "gateways": []any{"ns/apiserver"}, "tls": []any{tlsRoute("*.example", "other")}}))
	gateway := service("gateway", ip+"10", tcpPort("tcp", 8443))
	gateway.Spec.Type, gateway.Spec.Selector = corev1.ServiceTypeLoadBalancer, map[string]string{"app": "gateway", "role": "garden"}
	w.apply(gateway, slice("gateway", map[string]int{"tcp": 9443}, "239.1.2.3"))
	for i, name := range []string{"one", "other"} {
		server := httptest.NewUnstartedServer(http.HandlerFunc(func(out http.ResponseWriter, in *http.Request) {
			fmt.Fprintf(out, "%s:%s", name, in.TLS.ServerName)
		}))
		server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelInfo)
		listener, err := net.Listen("tcp4", fmt.Sprintf("%s%d:0", ip, i+1))
		require.NoError(t, err)
		server.Listener.Close()
		server.Listener = listener
		server.StartTLS()
		t.Cleanup(server.Close)
		host, port, _ := strings.Cut(listener.Addr().String(), ":")
		var number int
		_, _ = fmt.Sscan(port, &number)
		w.apply(service(name, fmt.Sprintf("%s2%d", ip, i), tcpPort("", 8443)), slice(name, map[string]int{"": number}, host))
	}
	var balanced string
	require.Eventually(t, func() bool {
		s, err := w.kube.CoreV1().Services("ns").Get(t.Context(), "gateway", metav1.GetOptions{})
		if err != nil || len(s.Status.LoadBalancer.Ingress) == 0 {
			return false
		}
		balanced = s.Status.LoadBalancer.Ingress[0].IP
		return true
	}, 15*time.Second, 10*time.Millisecond)
	get := func(name string) (string, error) {
		client := http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{ServerName: name, InsecureSkipVerify: true}}}
		answer, err := client.Get("https://" + balanced + ":8443/")
		if err != nil {
			return "", err
		}
		defer answer.Body.Close()
		body, err := io.ReadAll(answer.Body)
		return string(body), err
	}
	for name, want := range map[string]string{"api.one.example": "one:api.one.example", "api.other.example": "other:api.other.example"} {
		require.Eventually(t, func() bool {
			got, err := get(name)
			return err == nil && got == want
		}, 15*time.Second, 20*time.Millisecond, name)
	}
	_, err := get("api.foreign.org")
	assert.Error(t, err)
	behind, ok := w.controller.ServiceAt(netip.MustParseAddrPort(balanced+":8443"), "api.one.example")
	assert.Equal(t, "ns/one", behind)
	assert.True(t, ok)
	_, err = exchangeText(balanced+":8443", "GET / HTTP/1.0\r\n\r\n")
	assert.Error(t, err, "without TLS there is no name")
}
