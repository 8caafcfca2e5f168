// SPDX-License-Identifier: Apache-2.0

package namespacepolicies

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/pergola-dev/pergola/api/crds"
	"github.com/pergola-dev/pergola/hack/apiserver"
)

// server is the API server that the tests share in turn, because they all use namespace garden.
var server struct {
	config *rest.Config
	count  atomic.Int64
}

func TestMain(m *testing.M) {
	os.Exit(apiserver.Main(m, func(config *rest.Config) { server.config = config }, crds.All()...))
}

func formatPort(n uint16) string { return strconv.Itoa(int(n)) }

// testCluster is a cluster with a controller.
type testCluster struct {
	testing.TB
	ctx     context.Context
	client  kubernetes.Interface
	dynamic dynamic.Interface
	// writes counts the controller's writes.
	writes atomic.Int64
	id     string
}

func newTestCluster(t testing.TB) *testCluster {
	t.Helper()
	apiserver.SkipIfUnavailable(t)
	s := &testCluster{TB: t, id: fmt.Sprintf("n%d", server.count.Add(1))}
	var cancel context.CancelFunc
	s.ctx, cancel = context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	own := rest.CopyConfig(server.config)
	own.QPS, own.WarningHandler = -1, rest.NoWarnings{}
	var err error
	s.client, err = kubernetes.NewForConfig(own)
	require.NoError(t, err)
	s.dynamic, err = dynamic.NewForConfig(own)
	require.NoError(t, err)
	t.Cleanup(func() {
		for _, name := range s.listPolicies() {
			namespace, name, _ := strings.Cut(name, "/")
			require.NoError(t, s.client.NetworkingV1().NetworkPolicies(namespace).Delete(context.Background(), name, metav1.DeleteOptions{}))
		}
	})
	return s
}

// createNamespace creates a namespace of the test with labels (key=value).
func (s *testCluster) createNamespace(name string, labels ...string) string {
	s.Helper()
	o := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.id + "-" + name, Labels: map[string]string{}}}
	for _, l := range labels {
		key, value, _ := strings.Cut(l, "=")
		o.Labels[key] = value
	}
	_, err := s.client.CoreV1().Namespaces().Create(s.ctx, o, metav1.CreateOptions{})
	require.NoError(s, err)
	s.Cleanup(func() {
		require.NoError(s, s.client.CoreV1().Namespaces().Delete(context.Background(), o.Name, metav1.DeleteOptions{}))
	})
	return o.Name
}

// runController starts a controller; stop ends it.
func (s *testCluster) runController(change ...func(*Options)) (c *Controller, stop func()) {
	s.Helper()
	config := rest.CopyConfig(server.config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			if r.Method != http.MethodGet {
				s.writes.Add(1)
			}
			return next.RoundTrip(r)
		})
	})
	o := Options{Role: "test", Log: slog.New(slog.NewTextHandler(s.Output(), nil))}
	for _, f := range change {
		f(&o)
	}
	c, err := New(config, o)
	require.NoError(s, err)
	ctx, cancel := context.WithCancel(s.ctx)
	var group sync.WaitGroup
	group.Go(func() { c.Run(ctx) })
	stop = sync.OnceFunc(func() {
		cancel()
		group.Wait()
	})
	s.Cleanup(stop)
	return c, stop
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func (s *testCluster) getPolicy(namespace, name string) *networkingv1.NetworkPolicy {
	s.Helper()
	p, err := s.client.NetworkingV1().NetworkPolicies(namespace).Get(s.ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil
	}
	return p
}

// listPolicies returns the policies of the cluster.
func (s *testCluster) listPolicies() []string {
	s.Helper()
	list, err := s.client.NetworkingV1().NetworkPolicies("").List(context.Background(), metav1.ListOptions{})
	require.NoError(s, err)
	var out []string
	for _, p := range list.Items {
		out = append(out, p.Namespace+"/"+p.Name)
	}
	return out
}

// policyNamesIn returns the names of a namespace's policies.
func (s *testCluster) policyNamesIn(namespace string) []string {
	s.Helper()
	out := []string{}
	for _, name := range s.listPolicies() {
		if rest, ok := strings.CutPrefix(name, namespace+"/"); ok {
			out = append(out, rest)
		}
	}
	return out
}

func (s *testCluster) eventually(what string, ok func() bool) {
	s.Helper()
	require.Eventually(s, ok, 20*time.Second, 20*time.Millisecond, what)
}
