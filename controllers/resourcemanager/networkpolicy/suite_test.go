// SPDX-License-Identifier: Apache-2.0

package networkpolicy

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/yaml"

	"github.com/pergola-dev/pergola/hack/apiserver"
)

// server is the API server that the tests share; each test has its own namespaces, marked with its
// name.
var server struct {
	config *rest.Config
	count  atomic.Int64
}

func TestMain(m *testing.M) {
	ctrllog.SetLogger(logr.Discard())
	os.Exit(apiserver.Main(m, func(config *rest.Config) { server.config = config }))
}

// testEnv is the part of the API server of one test, with a client. NS in texts is its namespace,
// OTHER another one.
type testEnv struct {
	testing.TB
	ctx       context.Context
	ns, other string
	api       client.Client
	requests  *requestCounter
	// extraNamespaces are further namespaces.
	extraNamespaces []string
}

func newTestEnv(t testing.TB) *testEnv {
	t.Helper()
	apiserver.SkipIfUnavailable(t)
	id := fmt.Sprintf("np%d-%d", os.Getpid(), server.count.Add(1))
	s := &testEnv{TB: t, ns: id, other: id + "-other", requests: &requestCounter{}}
	var cancel context.CancelFunc
	s.ctx, cancel = context.WithTimeout(context.Background(), 2*time.Minute)
	t.Cleanup(cancel)
	own := rest.CopyConfig(server.config)
	own.QPS, own.WarningHandler = -1, rest.NoWarnings{}
	var err error
	s.api, err = client.New(own, client.Options{Scheme: scheme.Scheme})
	require.NoError(t, err)
	s.create(fmt.Sprintf("{apiVersion: v1, kind: Namespace, metadata: {name: NS, labels: {test: %q, kind: home}}}", id))
	s.create(fmt.Sprintf("{apiVersion: v1, kind: Namespace, metadata: {name: OTHER, labels: {test: %q, kind: other}}}", id))
	t.Cleanup(func() {
		// The next controller would otherwise clean up after Services that it does not handle.
		for _, kind := range []client.Object{&corev1.Pod{}, &corev1.Service{}, &networkingv1.NetworkPolicy{}} {
			for _, ns := range append(s.extraNamespaces, s.ns, s.other) {
				assert.NoError(t, s.api.DeleteAllOf(context.Background(), kind, client.InNamespace(ns), client.GracePeriodSeconds(0)))
			}
		}
	})
	return s
}

// start runs a controller for the namespaces of the test; the function stops it.
func (s *testEnv) start(change ...func(*Options)) (stop func()) {
	s.Helper()
	own := rest.CopyConfig(server.config)
	own.QPS, own.WarningHandler = -1, rest.NoWarnings{}
	own.Wrap(s.requests.wrap)
	mgr, err := manager.New(own, manager.Options{
		Scheme: scheme.Scheme, Logger: logr.Discard(), Metrics: metricsserver.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: new(true)},
		Cache:      cache.Options{ByObject: CacheByObject()},
	})
	require.NoError(s, err)
	o := Options{LingerPeriod: -1, NamespaceSelectors: []metav1.LabelSelector{{MatchLabels: map[string]string{"test": s.ns}}}}
	for _, c := range change {
		c(&o)
	}
	require.NoError(s, Add(mgr, o))
	ctx, cancel := context.WithCancel(s.ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		assert.NoError(s, mgr.Start(ctx))
	}()
	stop = sync.OnceFunc(func() {
		cancel()
		<-ended
	})
	s.Cleanup(stop)
	return stop
}

func (s *testEnv) replaceNamespaces(text string) string {
	return strings.NewReplacer("OTHER", s.other, "NS", s.ns).Replace(text)
}

func (s *testEnv) object(text string) *unstructured.Unstructured {
	s.Helper()
	o := &unstructured.Unstructured{}
	require.NoError(s, yaml.Unmarshal([]byte(s.replaceNamespaces(strings.ReplaceAll(text, "\t", " "))), &o.Object))
	return o
}

func (s *testEnv) create(text string) *unstructured.Unstructured {
	s.Helper()
	o := s.object(text)
	require.NoError(s, s.api.Create(s.ctx, o, client.FieldOwner("somebody")))
	return o
}

// service creates a headless Service with a selector app=<name>: an API server has few addresses.
func (s *testEnv) service(name string, annotations map[string]string, ports ...corev1.ServicePort) *corev1.Service {
	s.Helper()
	for key, value := range annotations {
		annotations[key] = s.replaceNamespaces(value)
	}
	o := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: name, Annotations: annotations},
		Spec:       corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone, Selector: map[string]string{"app": name}, Ports: ports},
	}
	require.NoError(s, s.api.Create(s.ctx, o))
	return o
}

// pod creates a pod with labels of clients, without their prefix.
func (s *testEnv) pod(namespace, name string, to ...string) *corev1.Pod {
	s.Helper()
	set := map[string]string{"app": name}
	for _, label := range to {
		set[labelPrefix+s.replaceNamespaces(label)] = labelAllowed
	}
	o := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: set},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "pause"}}},
	}
	require.NoError(s, s.api.Create(s.ctx, o))
	return o
}

// patch applies a JSON merge patch of another manager.
func (s *testEnv) patch(o client.Object, body string) {
	s.Helper()
	require.NoError(s, s.api.Patch(s.ctx, o, client.RawPatch(types.MergePatchType, []byte(s.replaceNamespaces(body))), client.FieldOwner("somebody")))
}

func (s *testEnv) delete(o client.Object) {
	s.Helper()
	require.NoError(s, s.api.Delete(s.ctx, o, client.GracePeriodSeconds(0)))
}

// policies returns the policies of both namespaces, as NS/name or OTHER/name.
func (s *testEnv) policies() []string {
	s.Helper()
	out := []string{}
	for text, namespace := range map[string]string{"NS/": s.ns, "OTHER/": s.other} {
		list := &networkingv1.NetworkPolicyList{}
		require.NoError(s, s.api.List(s.ctx, list, client.InNamespace(namespace)))
		for _, p := range list.Items {
			out = append(out, text+strings.NewReplacer(s.other, "OTHER", s.ns, "NS").Replace(p.Name))
		}
	}
	return out
}

// waitForPolicies waits until exactly these policies exist.
func (s *testEnv) waitForPolicies(names ...string) {
	s.Helper()
	var have []string
	if !assert.Eventually(s, func() bool {
		have = s.policies()
		return assert.ElementsMatch(&testing.T{}, names, have)
	}, 20*time.Second, 20*time.Millisecond) {
		require.ElementsMatch(s, names, have)
	}
}

func (s *testEnv) eventually(what string, ok func() bool) {
	s.Helper()
	require.Eventually(s, ok, 20*time.Second, 20*time.Millisecond, what)
}

// policy reads a policy; it is nil if it does not exist.
func (s *testEnv) policy(name string) *networkingv1.NetworkPolicy {
	s.Helper()
	namespace, name, _ := strings.Cut(s.replaceNamespaces(name), "/")
	p := &networkingv1.NetworkPolicy{}
	err := s.api.Get(s.ctx, types.NamespacedName{Namespace: namespace, Name: name}, p)
	if apierrors.IsNotFound(err) {
		return nil
	}
	require.NoError(s, err)
	return p
}

// requestCounter counts the requests of a controller by verb and kind, and can block some.
type requestCounter struct {
	mu sync.Mutex
	by map[string]int
	// blockedKind is the kind whose requests wait until release is closed.
	blockedKind string
	release     chan struct{}
}

func (c *requestCounter) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		verb, what := r.Method, "other"
		if r.URL.Query().Get("watch") != "" {
			verb = "WATCH"
		}
		for _, kind := range []string{"networkpolicies", "services", "pods", "ingresses", "virtualservices", "gateways", "customresourcedefinitions", "namespaces"} {
			if strings.Contains(r.URL.Path, "/"+kind) {
				what = kind
				break
			}
		}
		c.mu.Lock()
		if c.by == nil {
			c.by = map[string]int{}
		}
		c.by[verb+" "+what]++
		held, release := c.blockedKind, c.release
		c.mu.Unlock()
		if held == what {
			select {
			case <-release:
			case <-r.Context().Done():
				return nil, r.Context().Err()
			}
		}
		return next.RoundTrip(r)
	})
}

// block blocks requests for a kind; the function releases them.
func (c *requestCounter) block(kind string) (release func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.blockedKind, c.release = kind, make(chan struct{})
	return sync.OnceFunc(func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.blockedKind = ""
		close(c.release)
	})
}

// count returns the number of requests.
func (c *requestCounter) count(what string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.by[what]
}

// takeCounts returns the counts since the last call, except watches.
func (c *requestCounter) takeCounts() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := c.by
	c.by = map[string]int{}
	maps.DeleteFunc(out, func(what string, _ int) bool { return strings.HasPrefix(what, "WATCH") })
	return out
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func port(number, target int32) corev1.ServicePort {
	return corev1.ServicePort{Name: fmt.Sprintf("p%d", number), Port: number, Protocol: corev1.ProtocolTCP, TargetPort: intstr.FromInt32(target)}
}

func replaceAll(text string, pairs ...string) string {
	return strings.NewReplacer(pairs...).Replace(text)
}
