// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"encoding/pem"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/source/gittest"
)

// servedRepository is a repository in a folder that servers serve.
type servedRepository struct {
	*testRepository
	server *gittest.Repository
}

// newServedRepository creates one with a landscape in it. The names of landscapes are unique per
// server, which repeated tests share.
func (w *testEnv) newServedRepository(name string) *servedRepository {
	w.Helper()
	name += "-" + w.namespace
	bare := gittest.New(w, w.TempDir(), "landscape")
	s := &servedRepository{testRepository: &testRepository{T: w.T, dir: bare.Work, namespace: w.namespace, name: name}, server: bare}
	s.push("begin", map[string]string{"landscape.yaml": s.landscapeFile(""), "a.yaml": s.configMap(name, "1")})
	return s
}

// push commits files and pushes them to main.
func (s *servedRepository) push(message string, files map[string]string) string {
	s.Helper()
	commit := s.commit(message, files)
	s.server.Git("push", "--quiet", "--force", "origin", "HEAD:main")
	return commit
}

// pushValue pushes another value of the landscape's ConfigMap.
func (s *servedRepository) pushValue(value string) string {
	s.Helper()
	return s.push("set "+value, map[string]string{"a.yaml": s.configMap(s.name, value)})
}

// followServed creates the Landscape.
func (w *testEnv) followServed(s *servedRepository, address string, change ...func(*landscapev1alpha1.LandscapeSpec)) {
	w.Helper()
	w.createLandscape(s.name, s.testRepository, append([]func(*landscapev1alpha1.LandscapeSpec){func(spec *landscapev1alpha1.LandscapeSpec) {
		spec.Source.URL = address
	}}, change...)...)
}

// withTest returns the same world for a subtest.
func (w *testEnv) withTest(t *testing.T) *testEnv {
	out := *w
	out.T = t
	return &out
}

// replaceSecret replaces the data of a Secret.
func (w *testEnv) replaceSecret(name string, data map[string]string) {
	w.Helper()
	secret := &corev1.Secret{}
	require.NoError(w, w.client.Get(context.Background(), client.ObjectKey{Namespace: w.namespace, Name: name}, secret))
	secret.Data, secret.StringData = nil, data
	require.NoError(w, w.client.Update(context.Background(), secret))
}

// awaitApplied waits until a commit is applied without errors.
func (w *testEnv) awaitApplied(s *servedRepository, commit, value string) *landscapev1alpha1.Landscape {
	w.Helper()
	l := w.awaitLandscape(s.name, func(l *landscapev1alpha1.Landscape) bool {
		return strings.HasPrefix(readyText(l), "True Applied") && strings.HasSuffix(l.Status.LastAppliedRevision, commit)
	})
	assert.Equal(w, value, w.configMapValue(s.name))
	return l
}

// awaitRefused waits for a reason of the Ready condition, and checks that the applied revision
// stays.
func (w *testEnv) awaitRefused(s *servedRepository, reason, value string) *landscapev1alpha1.Landscape {
	w.Helper()
	l := w.awaitReady(s.name, "False "+reason)
	assert.Equal(w, value, w.configMapValue(s.name))
	if applied := l.Status.LastAppliedRevision; applied != "" {
		assert.Contains(w, readyText(l), applied+" stays applied")
	}
	return l
}

// apiProxy is a proxy of the API server. It records requests, and can cut the operator off.
type apiProxy struct {
	*httptest.Server
	mu       sync.Mutex
	requests []recordedRequest
	// isLastRequest reports whether a request is the operator's last: neither it nor any later
	// request arrives, as after a crash. nil: none is.
	isLastRequest func(recordedRequest) bool
	killed        chan struct{}
	stopOperator  func()
}

// recordedRequest is a recorded request.
type recordedRequest struct {
	method, uri string
	// impersonatedUser is the impersonated user; it is empty for the operator itself.
	impersonatedUser string
}

func (r recordedRequest) String() string {
	return strings.TrimSpace(r.method + " " + r.uri + " " + r.impersonatedUser)
}

func newProxy(t *testing.T) *apiProxy {
	t.Helper()
	target, err := url.Parse(testServer.config.Host)
	require.NoError(t, err)
	transport, err := rest.TransportFor(testServer.config)
	require.NoError(t, err)
	p := &apiProxy{killed: make(chan struct{})}
	p.stopOperator = sync.OnceFunc(func() { close(p.killed) })
	forward := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }, Transport: transport, FlushInterval: -1,
		ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)}
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !p.recordRequest(r) {
			panic(http.ErrAbortHandler)
		}
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		go func() {
			select {
			case <-p.killed:
				cancel()
			case <-ctx.Done():
			}
		}()
		forward.ServeHTTP(w, r.WithContext(ctx))
	}))
	p.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	t.Cleanup(func() {
		p.stopOperator()
		p.Close()
	})
	return p
}

func (p *apiProxy) recordRequest(r *http.Request) bool {
	select {
	case <-p.killed:
		return false
	default:
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	made := recordedRequest{r.Method, r.URL.RequestURI(), r.Header.Get("Impersonate-User")}
	p.requests = append(p.requests, made)
	if p.isLastRequest != nil && p.isLastRequest(made) {
		p.stopOperator()
		return false
	}
	return true
}

// clientConfig is a client config for the proxy.
func (p *apiProxy) clientConfig() *rest.Config { return &rest.Config{Host: p.URL} }

// kubeconfig is a kubeconfig for the proxy.
func (p *apiProxy) kubeconfig(t *testing.T) string {
	t.Helper()
	data, err := clientcmd.Write(clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{"c": {Server: p.URL}},
		Contexts: map[string]*clientcmdapi.Context{"x": {Cluster: "c"}}, CurrentContext: "x",
	})
	require.NoError(t, err)
	return string(data)
}

// takeRequests returns the matching requests since the last call.
func (p *apiProxy) takeRequests(which func(recordedRequest) bool) []recordedRequest {
	p.mu.Lock()
	defer p.mu.Unlock()
	requests := p.requests
	p.requests = nil
	return slices.DeleteFunc(requests, func(r recordedRequest) bool { return !which(r) })
}

// requireLogin requires a login to a Git server. change changes its password.
func requireLogin(s *gittest.HTTPServer, username, password string) (change func(string)) {
	var current atomic.Pointer[string]
	current.Store(&password)
	s.Intercept(func(w http.ResponseWriter, r *http.Request) bool {
		name, given, ok := r.BasicAuth()
		if ok && name == username && given == *current.Load() {
			return false
		}
		w.Header().Set("WWW-Authenticate", `Basic realm="git"`)
		w.WriteHeader(http.StatusUnauthorized)
		return true
	})
	return func(next string) { current.Store(&next) }
}

// certificateOf returns the certificate of a server as PEM.
func certificateOf(s *gittest.HTTPServer) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}))
}

// repositoryURL returns the repository's URL on a server.
func repositoryURL(base string) string { return base + "/landscape.git" }

// signingKey writes an SSH key to disk, and returns its public part as in Secrets.
func signingKey(t *testing.T) (file, public string) {
	t.Helper()
	signer, private := gittest.NewKey(t)
	file = filepath.Join(t.TempDir(), "key")
	require.NoError(t, os.WriteFile(file, private, 0o600))
	return file, string(ssh.MarshalAuthorizedKey(signer.PublicKey()))
}

// suspend suspends or resumes a Landscape.
func (w *testEnv) suspend(name string, yes bool) {
	w.Helper()
	w.changeLandscape(name, func(l *landscapev1alpha1.Landscape) {
		l.Spec.Suspend, l.Spec.Suspension = yes, nil
		if yes {
			l.Spec.Suspension = &landscapev1alpha1.Suspension{Reason: "test"}
		}
	})
	w.awaitLandscape(name, func(l *landscapev1alpha1.Landscape) bool {
		return strings.HasPrefix(readyText(l), "Unknown Suspended") == yes
	})
}

// eventually waits until ok is true.
func (w *testEnv) eventually(what string, ok func() bool) {
	w.Helper()
	require.Eventually(w, ok, time.Minute, 20*time.Millisecond, what)
}

// deleteLease deletes the lease of a dead operator, so that tests need not wait for its expiry.
func (w *testEnv) deleteLease() {
	w.Helper()
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "gardener-operator-leader-election"}}
	require.NoError(w, client.IgnoreNotFound(w.client.Delete(context.Background(), lease)))
}
