// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	certutil "k8s.io/client-go/util/cert"
	testclock "k8s.io/utils/clock/testing"

	"github.com/pergola-dev/pergola/schemas"
)

// writeCertificatePair writes a new certificate and its key.
func writeCertificatePair(t *testing.T, certFile, keyFile string) {
	t.Helper()
	cert, key, err := certutil.GenerateSelfSignedCertKey("localhost", nil, nil)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(certFile, cert, 0o600))
	require.NoError(t, os.WriteFile(keyFile, key, 0o600))
}

// TestCertificateIsReadAgain: new connections use a new pair, but never a mismatched one.
func TestCertificateIsReadAgain(t *testing.T) {
	certFile, keyFile := filepath.Join(t.TempDir(), "tls.crt"), filepath.Join(t.TempDir(), "tls.key")
	_, err := CertificatesFromFiles(certFile, keyFile, slog.New(slog.DiscardHandler), testclock.NewFakePassiveClock(time.Unix(0, 0)))
	require.ErrorIs(t, err, os.ErrNotExist)
	writeCertificatePair(t, certFile, keyFile)
	var logged bytes.Buffer
	clock := testclock.NewFakePassiveClock(time.Unix(1000, 0))
	get, err := CertificatesFromFiles(certFile, keyFile, slog.New(slog.NewTextHandler(&logged, nil)), clock)
	require.NoError(t, err)
	now := func() []byte {
		certificate, err := get(nil)
		require.NoError(t, err)
		return certificate.Certificate[0]
	}
	first := now()

	key, err := os.ReadFile(keyFile)
	require.NoError(t, err)
	writeCertificatePair(t, certFile, keyFile)
	newKey, err := os.ReadFile(keyFile)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(keyFile, key, 0o600))
	require.NoError(t, os.Chtimes(certFile, time.Unix(1, 0), time.Unix(1, 0)))
	assert.Equal(t, first, now(), "nobody looks twice in a second")
	clock.SetTime(time.Unix(1002, 0))
	assert.Equal(t, first, now(), "the key does not fit yet")
	assert.Contains(t, logged.String(), "the last one stays in use")

	require.NoError(t, os.WriteFile(keyFile, newKey, 0o600))
	require.NoError(t, os.Chtimes(keyFile, time.Unix(2, 0), time.Unix(2, 0)))
	clock.SetTime(time.Unix(1004, 0))
	second := now()
	assert.NotEqual(t, first, second)

	require.NoError(t, os.Remove(certFile))
	clock.SetTime(time.Unix(1006, 0))
	assert.Equal(t, second, now())
}

// newServer returns a Server with its own authority, for localhost and more names, and the pool
// with the authority.
func newServer(t *testing.T, names ...string) (*Server, *x509.CertPool) {
	t.Helper()
	ca := filepath.Join(t.TempDir(), "ca.crt")
	certificates, err := SelfSignedCertificates(append([]string{"localhost", "127.0.0.1", "::1"}, names...), ca)
	require.NoError(t, err)
	pool := x509.NewCertPool()
	require.True(t, pool.AppendCertsFromPEM(readFile(t, ca)))
	listen := func() net.Listener {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		return listener
	}
	return &Server{Certificates: certificates, Webhooks: listen(), Health: listen(), Log: slog.New(slog.DiscardHandler)}, pool
}

// TestServer: it answers over TLS with its own authority, reports its health, and finishes active
// requests.
func TestServer(t *testing.T) {
	h := newHandler(t, Options{})
	entered, release := make(chan struct{}), make(chan struct{})
	h.validate = func(context.Context, []schemas.Input, schemas.Options) ([]schemas.Violation, error) {
		close(entered)
		<-release
		return nil, nil
	}
	server, pool := newServer(t, "webhook.garden.svc")
	server.Handler, server.DrainTimeout = h, time.Minute
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- server.Run(ctx) }()

	for _, path := range []string{"/healthz", "/readyz", "/metrics"} {
		response, err := http.Get("http://" + server.Health.Addr().String() + path)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		assert.Equal(t, http.StatusOK, response.StatusCode, path)
	}
	answers := make(chan int, 1)
	for _, name := range []string{"localhost", "webhook.garden.svc"} {
		connection, err := tls.Dial("tcp", server.Webhooks.Addr().String(), &tls.Config{RootCAs: pool, ServerName: name})
		require.NoError(t, err, name)
		require.NoError(t, connection.Close())
	}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}}
	body := encodeJSON(t, newReview(t, "CREATE", validObject(t, "ExposureClass"), nil))
	go func() {
		response, err := client.Post("https://"+server.Webhooks.Addr().String()+PathValidate, "application/json", bytes.NewReader(body))
		if err != nil {
			answers <- 0
			return
		}
		_, _ = io.Copy(io.Discard, response.Body)
		_ = response.Body.Close()
		answers <- response.StatusCode
	}()
	<-entered
	cancel()
	select {
	case err := <-done:
		require.Fail(t, "it ended while it was asked", "%v", err)
	default:
	}
	close(release)
	assert.Equal(t, http.StatusOK, <-answers)
	assert.NoError(t, <-done)
}

// TestServerLingers: clients of a Service may still open connections for a moment.
func TestServerLingers(t *testing.T) {
	timer := testclock.NewFakeClock(time.Unix(0, 0))
	server, pool := newServer(t)
	server.Handler, server.ShutdownDelay, server.Clock = newHandler(t, Options{}), 3*time.Second, timer
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- server.Run(ctx) }()
	body := encodeJSON(t, newReview(t, "CREATE", validObject(t, "ExposureClass"), nil))
	asked := func() (int, error) {
		client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, DisableKeepAlives: true}}
		response, err := client.Post("https://"+server.Webhooks.Addr().String()+PathValidate, "application/json", bytes.NewReader(body))
		if err != nil {
			return 0, err
		}
		return response.StatusCode, response.Body.Close()
	}
	ready := func() int {
		response, err := http.Get("http://" + server.Health.Addr().String() + "/readyz")
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		return response.StatusCode
	}
	require.Equal(t, http.StatusOK, ready())
	cancel()
	require.Eventually(t, timer.HasWaiters, 10*time.Second, time.Millisecond)
	assert.Equal(t, http.StatusServiceUnavailable, ready(), "so that no Service sends anything more")
	code, err := asked()
	require.NoError(t, err)
	assert.Equal(t, http.StatusOK, code)
	timer.Step(3 * time.Second)
	require.NoError(t, <-done)
	_, err = asked()
	require.Error(t, err)
}
