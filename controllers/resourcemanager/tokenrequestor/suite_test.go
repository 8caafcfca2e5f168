// SPDX-License-Identifier: Apache-2.0

package tokenrequestor

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/yaml"

	"github.com/pergola-dev/pergola/hack/apiserver"
)

var server struct {
	config *rest.Config
	count  atomic.Int64
}

func TestMain(m *testing.M) {
	os.Exit(apiserver.Main(m, func(config *rest.Config) { server.config = config }))
}

const deadline = 20 * time.Second

// testEnv is a requestor with a source and a target namespace of one API server, which it reaches
// over different connections.
type testEnv struct {
	testing.TB
	ctx            context.Context
	source, target string
	api            kubernetes.Interface
	clock          *clocktesting.FakeClock
	options        Options
	log            *logBuffer

	mu       sync.Mutex
	events   []string
	requests []string
	// intercept may answer a request of the requestor instead of the API server.
	intercept func(*http.Request) *http.Response
}

// logBuffer collects log lines.
type logBuffer struct {
	mu sync.Mutex
	bytes.Buffer
}

func (r *logBuffer) logger() logr.Logger {
	return funcr.New(func(prefix, args string) {
		r.mu.Lock()
		defer r.mu.Unlock()
		fmt.Fprintln(r, prefix, args)
	}, funcr.Options{Verbosity: 9})
}

func (r *logBuffer) text() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.String()
}

func newTestEnv(t testing.TB) *testEnv {
	t.Helper()
	apiserver.SkipIfUnavailable(t)
	n := server.count.Add(1)
	s := &testEnv{TB: t, source: fmt.Sprintf("source%d-%d", os.Getpid(), n), target: fmt.Sprintf("target%d-%d", os.Getpid(), n),
		clock: clocktesting.NewFakeClock(time.Now()), log: &logBuffer{}}
	var cancel context.CancelFunc
	s.ctx, cancel = context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	api, err := kubernetes.NewForConfig(server.config)
	require.NoError(t, err)
	s.api = api
	for _, ns := range []string{s.source, s.target} {
		_, err := s.api.CoreV1().Namespaces().Create(s.ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}}, metav1.CreateOptions{})
		require.NoError(t, err)
	}
	s.options = Options{Source: s.connection(), Target: s.connection(), Namespaces: []string{s.source}, Clock: s.clock, Metrics: prometheus.NewRegistry(),
		Event: func(secret *corev1.Secret, reason, message string) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.events = append(s.events, secret.Name+": "+reason+": "+message)
		}}
	return s
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// connection returns a configuration whose requests the test can count and disturb.
func (s *testEnv) connection() *rest.Config {
	c := rest.CopyConfig(server.config)
	c.QPS = -1
	c.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			s.mu.Lock()
			disturb := s.intercept
			if r.URL.Query().Get("watch") == "" {
				s.requests = append(s.requests, r.Method+" "+r.URL.Path)
			}
			s.mu.Unlock()
			if disturb != nil {
				if answer := disturb(r); answer != nil {
					answer.Request = r
					return answer, nil
				}
			}
			return next.RoundTrip(r)
		})
	})
	return c
}

func (s *testEnv) interceptRequests(by func(*http.Request) *http.Response) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.intercept = by
}

func errorResponse(code int, message string) *http.Response {
	body := fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","status":"Failure","message":%q,"code":%d}`, message, code)
	return &http.Response{StatusCode: code, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body))}
}

// start starts the requestor; the function stops it.
func (s *testEnv) start() (stop func()) {
	s.Helper()
	mgr, err := manager.New(server.config, manager.Options{Logger: s.log.logger(), Metrics: metricsserver.Options{BindAddress: "0"}, HealthProbeBindAddress: "0",
		Controller: config.Controller{SkipNameValidation: ptr.To(true)}})
	require.NoError(s, err)
	require.NoError(s, Add(mgr, s.options))
	ctx, cancel := context.WithCancel(s.ctx)
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		require.NoError(s, <-ended)
	})
	s.Cleanup(stop)
	return stop
}

// create creates a Secret from YAML, in which SOURCE and TARGET are the namespaces. Without labels
// it gets those of class shoot.
func (s *testEnv) create(text string) {
	s.Helper()
	secret := &corev1.Secret{}
	require.NoError(s, yaml.UnmarshalStrict([]byte(strings.NewReplacer("SOURCE", s.source, "TARGET", s.target).Replace(text)), secret))
	if secret.Labels == nil {
		secret.Labels = map[string]string{"resources.gardener.cloud/purpose": "token-requestor", "resources.gardener.cloud/class": "shoot"}
	}
	_, err := s.api.CoreV1().Secrets(s.source).Create(s.ctx, secret, metav1.CreateOptions{})
	require.NoError(s, err)
}

// accountAnnotations returns the annotations that request a token of the account in the target
// namespace.
func accountAnnotations(more string) string {
	return "annotations: {serviceaccount.resources.gardener.cloud/name: account, serviceaccount.resources.gardener.cloud/namespace: TARGET" + more + "}"
}

func (s *testEnv) patch(secret, patch string) {
	s.Helper()
	raw, err := yaml.YAMLToJSON([]byte(patch))
	require.NoError(s, err)
	_, err = s.api.CoreV1().Secrets(s.source).Patch(s.ctx, secret, types.MergePatchType, raw, metav1.PatchOptions{})
	require.NoError(s, err)
}

func (s *testEnv) get(namespace, name string) *corev1.Secret {
	s.Helper()
	secret, err := s.api.CoreV1().Secrets(namespace).Get(s.ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return &corev1.Secret{}
	}
	require.NoError(s, err)
	return secret
}

func (s *testEnv) eventually(what string, holds func() bool) {
	s.Helper()
	require.Eventually(s, holds, deadline, 20*time.Millisecond, what)
}

// waitForToken waits for a token in a Secret of the source, other than the given ones.
func (s *testEnv) waitForToken(name string, not ...string) string {
	s.Helper()
	var token string
	s.eventually("a new token is there", func() bool {
		have, err := readTokenState(s.get(s.source, name).Data, nil)
		for _, n := range not {
			if have.token == n {
				return false
			}
		}
		token = have.token
		return err == nil && token != ""
	})
	return token
}

// tokenUser returns the user that the API server derives from a token; it is empty if it rejects
// it.
func (s *testEnv) tokenUser(token string, audiences ...string) string {
	s.Helper()
	review, err := s.api.AuthenticationV1().TokenReviews().Create(s.ctx, &authenticationv1.TokenReview{
		Spec: authenticationv1.TokenReviewSpec{Token: token, Audiences: audiences}}, metav1.CreateOptions{})
	require.NoError(s, err)
	if !review.Status.Authenticated {
		return ""
	}
	return review.Status.User.Username
}

func (s *testEnv) takeEvents() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.events...)
}

// takeRequests returns the requests of the requestor since the last call, except watches.
func (s *testEnv) takeRequests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.requests
	s.requests = nil
	return out
}

// waitUntilIdle waits until all earlier changes are reconciled: it creates a last Secret, which
// uses the same queue.
func (s *testEnv) waitUntilIdle() {
	s.Helper()
	name := fmt.Sprintf("last-%d", server.count.Add(1))
	s.create("metadata: {name: " + name + ", " + strings.Replace(accountAnnotations(""), "name: account", "name: last", 1) + "}")
	token := s.waitForToken(name)
	require.NotEmpty(s, token)
	s.eventually("its own change was looked at", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		gets := 0
		for _, r := range s.requests {
			if r == "GET /api/v1/namespaces/"+s.source+"/secrets/"+name {
				gets++
			}
		}
		return gets >= 2
	})
}
