// SPDX-License-Identifier: Apache-2.0

package access

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	testingclock "k8s.io/utils/clock/testing"
)

// secretStore imitates the cluster with the Secret.
type secretStore struct {
	mu         sync.Mutex
	kubeconfig []byte
	err        error
	reads      int
}

func (p *secretStore) setSecret(raw []byte, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.kubeconfig, p.err = raw, err
}

func (p *secretStore) readCount() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.reads
}

func (p *secretStore) readSecret(_ context.Context, key types.NamespacedName) (*corev1.Secret, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reads++
	switch {
	case p.err != nil:
		return nil, p.err
	case p.kubeconfig == nil:
		return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "secrets"}, key.Name)
	}
	return &corev1.Secret{Data: map[string][]byte{KubeconfigKey: p.kubeconfig}}, nil
}

// tokenServer accepts one token, which may change, and echoes the request.
type tokenServer struct {
	*httptest.Server
	token    atomic.Value
	requests atomic.Int64
}

func newTokenServer(t *testing.T, token string) *tokenServer {
	t.Helper()
	s := &tokenServer{}
	s.token.Store(token)
	s.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.requests.Add(1)
		if r.Header.Get("Authorization") != "Bearer "+s.token.Load().(string) {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		body, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s %s%s", r.Method, r.URL.Path, body)
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *tokenServer) kubeconfig(t *testing.T, change ...func(*clientcmdapi.Cluster, *clientcmdapi.AuthInfo)) []byte {
	t.Helper()
	cluster := &clientcmdapi.Cluster{Server: s.URL, CertificateAuthorityData: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})}
	user := &clientcmdapi.AuthInfo{Token: s.token.Load().(string)}
	for _, c := range change {
		c(cluster, user)
	}
	raw, err := clientcmd.Write(clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{"c": cluster}, AuthInfos: map[string]*clientcmdapi.AuthInfo{"u": user},
		Contexts: map[string]*clientcmdapi.Context{"x": {Cluster: "c", AuthInfo: "u"}}, CurrentContext: "x",
	})
	require.NoError(t, err)
	return raw
}

// connectionTest is a connection with its clock for a test.
type connectionTest struct {
	*testing.T
	config *rest.Config
	clock  *testingclock.FakePassiveClock
}

func newConnectionTest(t *testing.T, p *secretStore, outside ...string) *connectionTest {
	l := &connectionTest{T: t, clock: testingclock.NewFakePassiveClock(time.Unix(1700000000, 0))}
	source := VirtualGardenSource(p.readSecret, l.clock)
	if len(outside) > 0 {
		source.ExternalURL = func(context.Context) (string, error) { return outside[0], nil }
	}
	l.config = LazyConfig(source)
	return l
}

func (l *connectionTest) advance(d time.Duration) { l.clock.SetTime(l.clock.Now().Add(d)) }

// send sends a request and returns status and body.
func (l *connectionTest) send(method, body string) (int, string, error) {
	l.Helper()
	client, err := rest.HTTPClientFor(l.config)
	require.NoError(l, err)
	var content io.Reader
	if body != "" {
		content = bytes.NewReader([]byte(body))
	}
	req, err := http.NewRequestWithContext(l.Context(), method, l.config.Host+"/api/v1", content)
	require.NoError(l, err)
	resp, err := client.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	require.NoError(l, err)
	return resp.StatusCode, string(text), nil
}

func (l *connectionTest) mustSend(method, body string) {
	l.Helper()
	status, text, err := l.send(method, body)
	require.NoError(l, err)
	assert.Equal(l, http.StatusOK, status)
	assert.Equal(l, method+" /api/v1"+body, text)
}

func TestSecretAppearsLater(t *testing.T) {
	p, s := &secretStore{}, newTokenServer(t, "one")
	l := newConnectionTest(t, p)
	_, _, err := l.send(http.MethodGet, "")
	require.Error(t, err)
	assert.True(t, IsMissing(err))
	assert.ErrorContains(t, err, "access to the virtual garden does not exist yet: Secret garden/gardener-internal is created with the Garden")
	assert.False(t, HasCredentials(t.Context(), l.config))
	assert.Equal(t, 1, p.readCount(), "it is not read for each request")

	p.setSecret(s.kubeconfig(t), nil)
	l.advance(minReloadPause)
	assert.True(t, HasCredentials(t.Context(), l.config))
	l.mustSend(http.MethodGet, "")
	l.mustSend(http.MethodPatch, "{}")
	assert.Equal(t, 2, p.readCount())
	bundle, err := CABundle(t.Context(), l.config)
	require.NoError(t, err)
	assert.Contains(t, string(bundle), "BEGIN CERTIFICATE")
}

// TestRejectedAccessIsReloaded checks that rejected access is reloaded, and that the request is
// repeated with its body.
func TestRejectedAccessIsReloaded(t *testing.T) {
	for name, c := range map[string]struct {
		// change runs between two requests, and returns the server that answers from then on.
		change func(t *testing.T, p *secretStore, s *tokenServer) *tokenServer
		method string
		body   string
	}{
		"another token": {func(t *testing.T, p *secretStore, s *tokenServer) *tokenServer {
			s.token.Store("two")
			p.setSecret(s.kubeconfig(t), nil)
			return s
		}, http.MethodPost, "content"},
		"another server with another authority, at the same name": {func(t *testing.T, p *secretStore, s *tokenServer) *tokenServer {
			next := newTokenServer(t, "one")
			p.setSecret(next.kubeconfig(t), nil)
			s.Close()
			return next
		}, http.MethodPatch, "content"},
		"a renewed token before the old one ends": {func(t *testing.T, p *secretStore, s *tokenServer) *tokenServer {
			p.setSecret(s.kubeconfig(t, func(c *clientcmdapi.Cluster, _ *clientcmdapi.AuthInfo) { c.DisableCompression = true }), nil)
			return s
		}, http.MethodGet, ""},
	} {
		t.Run(name, func(t *testing.T) {
			p, s := &secretStore{}, newTokenServer(t, "one")
			p.setSecret(s.kubeconfig(t), nil)
			l := newConnectionTest(t, p)
			l.mustSend(http.MethodGet, "")
			next := c.change(t, p, s)
			l.advance(maxSecretAge)
			before := next.requests.Load()
			l.mustSend(c.method, c.body)
			assert.Equal(t, int64(1), next.requests.Load()-before, "what is old is not used")
			assert.Equal(t, 2, p.readCount())
		})
	}
}

// TestRotationIsDetectedAtOnce checks that the first failing request detects a rotation, whatever
// the age of the cache.
func TestRotationIsDetectedAtOnce(t *testing.T) {
	p, s := &secretStore{}, newTokenServer(t, "one")
	p.setSecret(s.kubeconfig(t), nil)
	l := newConnectionTest(t, p)
	l.mustSend(http.MethodGet, "")
	s.token.Store("two")
	p.setSecret(s.kubeconfig(t), nil)
	l.advance(minReloadPause)
	l.mustSend(http.MethodPost, "content")
	assert.Equal(t, int64(3), s.requests.Load())

	// With another CA, the certificate fails before anything is sent.
	p.setSecret(s.kubeconfig(t, func(c *clientcmdapi.Cluster, _ *clientcmdapi.AuthInfo) { c.CertificateAuthorityData = otherCA }), nil)
	l.advance(maxSecretAge)
	_, _, err := l.send(http.MethodPost, "content")
	require.ErrorContains(t, err, "certificate")
	p.setSecret(s.kubeconfig(t), nil)
	l.advance(minReloadPause)
	l.mustSend(http.MethodPost, "content")
}

func TestPermanentRejection(t *testing.T) {
	p, s := &secretStore{}, newTokenServer(t, "one")
	p.setSecret(s.kubeconfig(t), nil)
	l := newConnectionTest(t, p)
	l.mustSend(http.MethodGet, "")
	s.token.Store("two")
	l.advance(minReloadPause)
	for range 3 {
		status, _, err := l.send(http.MethodGet, "")
		require.NoError(t, err)
		assert.Equal(t, http.StatusUnauthorized, status, "the answer is that of the server")
	}
	assert.Equal(t, 2, p.readCount(), "it is read once for a crowd of requests")
	assert.Equal(t, int64(4), s.requests.Load(), "nothing is sent again in vain")
}

// TestLongOutageCausesFewReads checks that an API server that is down for long causes few reads.
// After it has worked again, the next rotation is detected at once.
func TestLongOutageCausesFewReads(t *testing.T) {
	p, s := &secretStore{}, newTokenServer(t, "one")
	good := s.kubeconfig(t)
	p.setSecret(good, nil)
	l := newConnectionTest(t, p)
	l.mustSend(http.MethodGet, "")
	s.token.Store("two")
	const minutes = 60
	for range minutes * 4 {
		l.advance(15 * time.Second)
		_, _, err := l.send(http.MethodGet, "")
		require.NoError(t, err)
	}
	assert.Less(t, p.readCount(), minutes/2)
	s.token.Store("one")
	l.mustSend(http.MethodGet, "")
	before := p.readCount()
	s.token.Store("three")
	p.setSecret(s.kubeconfig(t), nil)
	l.advance(minReloadPause)
	l.mustSend(http.MethodGet, "")
	assert.Equal(t, before+1, p.readCount())
}

// TestAccessStaysWhileSecretIsUnreadable checks that the cached access stays while the cluster of
// the Secret is down or the Secret no longer exists.
func TestAccessStaysWhileSecretIsUnreadable(t *testing.T) {
	for name, err := range map[string]error{"down": errors.New("connection refused"), "gone": nil} {
		t.Run(name, func(t *testing.T) {
			p, s := &secretStore{}, newTokenServer(t, "one")
			p.setSecret(s.kubeconfig(t), nil)
			l := newConnectionTest(t, p)
			l.mustSend(http.MethodGet, "")
			p.setSecret(nil, err)
			l.advance(maxSecretAge)
			l.mustSend(http.MethodGet, "")
			assert.Equal(t, 2, p.readCount())
		})
	}
}

// TestErrorsDoNotQuoteSecret checks that no error quotes the Secret.
func TestErrorsDoNotQuoteSecret(t *testing.T) {
	const secret = "hunter2"
	s := newTokenServer(t, secret)
	closed := newTokenServer(t, secret)
	closed.Close()
	for name, c := range map[string]struct {
		raw  []byte
		err  error
		want string
	}{
		"empty":         {[]byte{}, nil, "it has no key kubeconfig"},
		"no kubeconfig": {[]byte("apiVersion: v1\nkind: Config\nusers: hunter2\n"), nil, "cannot be read"},
		"runs a program": {s.kubeconfig(t, func(_ *clientcmdapi.Cluster, u *clientcmdapi.AuthInfo) {
			u.Exec = &clientcmdapi.ExecConfig{Command: secret, APIVersion: "client.authentication.k8s.io/v1", InteractiveMode: "Never"}
		}), nil, "runs a program"},
		"refers to file": {s.kubeconfig(t, func(_ *clientcmdapi.Cluster, u *clientcmdapi.AuthInfo) { u.TokenFile = "/" + secret }), nil, "refers to files"},
		"bad keys": {s.kubeconfig(t, func(_ *clientcmdapi.Cluster, u *clientcmdapi.AuthInfo) {
			u.ClientCertificateData, u.ClientKeyData = []byte(secret), []byte(secret)
		}), nil, "certificates of the kubeconfig in its Secret cannot be used"},
		"user in address": {closed.kubeconfig(t, func(c *clientcmdapi.Cluster, _ *clientcmdapi.AuthInfo) {
			c.Server = "https://u:" + secret + "@" + closed.Listener.Addr().String()
		}), nil, "refused"},
		"not reachable": {closed.kubeconfig(t), nil, "refused"},
		"not allowed":   {nil, errors.New("secrets is forbidden"), "reading Secret garden/gardener-internal: secrets is forbidden"},
	} {
		t.Run(name, func(t *testing.T) {
			p := &secretStore{}
			p.setSecret(c.raw, c.err)
			_, _, err := newConnectionTest(t, p).send(http.MethodGet, "")
			require.ErrorContains(t, err, c.want)
			assert.NotContains(t, err.Error(), secret)
			assert.False(t, IsMissing(err), "somebody has to do something about it")
		})
	}
}

// TestExternalAddress checks that the external address replaces only addresses that the cluster
// alone resolves.
func TestExternalAddress(t *testing.T) {
	s := newTokenServer(t, "one")
	for name, c := range map[string]struct {
		server, outside, want string
	}{
		"in the cluster":               {VirtualGardenURL, "", VirtualGardenURL},
		"from elsewhere":               {VirtualGardenURL, "https://api.garden.example", "https://api.garden.example"},
		"short name, as upstream's":    {"https://virtual-garden-kube-apiserver", "https://api.garden.example", "https://api.garden.example"},
		"a port":                       {"https://virtual-garden-kube-apiserver.garden.svc:443", "https://api.garden.example", "https://api.garden.example"},
		"an address of somebody else":  {"https://garden.example:6443/path", "https://api.garden.example", "https://garden.example:6443/path"},
		"loopback, in a demonstration": {"https://127.0.0.1:1234", "https://api.garden.example", "https://127.0.0.1:1234"},
		"localhost":                    {"https://localhost:1234", "https://api.garden.example", "https://localhost:1234"},
	} {
		t.Run(name, func(t *testing.T) {
			raw := s.kubeconfig(t, func(k *clientcmdapi.Cluster, _ *clientcmdapi.AuthInfo) { k.Server = c.server })
			config, err := restConfigOf(&corev1.Secret{Data: map[string][]byte{KubeconfigKey: raw}}, c.outside)
			require.NoError(t, err)
			assert.Equal(t, c.want, config.Host)
		})
	}
}

// TestCancelledCallerDoesNotWait checks that a caller whose context ends does not wait for another
// reader.
func TestCancelledCallerDoesNotWait(t *testing.T) {
	reading, end := make(chan struct{}), make(chan struct{})
	source := VirtualGardenSource(func(ctx context.Context, _ types.NamespacedName) (*corev1.Secret, error) {
		close(reading)
		<-end
		return nil, errors.New("it is down")
	}, nil)
	config := LazyConfig(source)
	var group sync.WaitGroup
	group.Go(func() { HasCredentials(context.Background(), config) })
	<-reading
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := CABundle(ctx, config)
	assert.ErrorIs(t, err, context.Canceled)
	close(end)
	group.Wait()
}

// otherCA is a CA that has signed nothing in these tests.
var otherCA = func() []byte {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		panic(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw})
}()
