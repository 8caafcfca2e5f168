// SPDX-License-Identifier: Apache-2.0

package source

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// blobStoreServer is the target of a registry's redirects. It records requests with their headers.
type blobStoreServer struct {
	*httptest.Server
	mutex sync.Mutex
	seen  []*http.Request
}

func newBlobStoreServer(t *testing.T, start func(http.Handler) *httptest.Server, answer http.HandlerFunc) *blobStoreServer {
	t.Helper()
	s := &blobStoreServer{}
	s.Server = start(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mutex.Lock()
		s.seen = append(s.seen, r)
		s.mutex.Unlock()
		answer(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *blobStoreServer) requests() []*http.Request {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	seen := s.seen
	s.seen = nil
	return seen
}

// requireToken rejects requests without the token.
func requireToken(w http.ResponseWriter, r *http.Request, realm string) bool {
	switch {
	case r.URL.Path == "/token":
		_, _ = w.Write([]byte(`{"token":"letmein","expires_in":300}`))
	case r.Header.Get("Authorization") == "Bearer letmein":
		return false
	default:
		w.Header().Set("WWW-Authenticate", `Bearer realm="`+realm+`/token",service="x",scope="repository:landscapes/prod:pull"`)
		w.WriteHeader(http.StatusUnauthorized)
	}
	return true
}

// TestBlobsFromAnotherHost: blob stores on other hosts return blobs and get no credentials.
func TestBlobsFromAnotherHost(t *testing.T) {
	registry := newRegistry(t)
	files := buildArchive(t, archivedFile{name: "a", content: "x"})
	registry.push(t, "latest", fluxContent, files)
	objects := newBlobStoreServer(t, httptest.NewTLSServer, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/back" { // redirects back to the registry, for something else
			http.Redirect(w, r, registry.URL+"/v2/private/blobs/sha256:1", http.StatusTemporaryRedirect)
			return
		}
		_, _ = w.Write(files)
	})
	plain := newBlobStoreServer(t, httptest.NewServer, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(files) })
	credentials := registry.credentials()
	credentials.Username, credentials.Password = "bot", "hunter2"
	credentials.Certificate = &registry.TLS.Certificates[0]
	objects.TLS.ClientAuth = 1 // a client with a certificate sends it

	atRegistry := make(chan string, 10)
	for name, c := range map[string]struct {
		part, to string
		// says is part of the error; empty: the blob comes from the store.
		says string
	}{
		"blob":                {part: "/blobs/", to: objects.URL + "/bucket/sha?signature=secret"},
		"manifest":            {part: "/manifests/sha256:", to: objects.URL, says: "is allowed only for the content of artifacts"},
		"tag":                 {part: "/manifests/latest", to: objects.URL, says: "is allowed only for the content of artifacts"},
		"token":               {part: "/token", to: objects.URL, says: "is allowed only for the content of artifacts"},
		"blob without TLS":    {part: "/blobs/", to: plain.URL, says: "plain HTTP address"},
		"metadata of a cloud": {part: "/blobs/", to: "https://169.254.169.254/latest/meta-data?signature=secret", says: "the registry redirects to 169.254.169.254, which"},
		"link":                {part: "/blobs/", to: "https://[fe80::1]/x", says: "the registry redirects to fe80::1, which"},
		"led back":            {part: "/blobs/", to: objects.URL + "/back", says: "status 418"},
	} {
		t.Run(name, func(t *testing.T) {
			registry.reset(func(w http.ResponseWriter, r *http.Request) bool {
				if r.URL.Path == "/v2/private/blobs/sha256:1" {
					atRegistry <- r.Header.Get("Authorization")
					w.WriteHeader(http.StatusTeapot)
					return true
				}
				if strings.Contains(r.URL.Path, c.part) && (c.part == "/token" || r.Header.Get("Authorization") != "") {
					http.Redirect(w, r, c.to, http.StatusTemporaryRedirect)
					return true
				}
				return requireToken(w, r, registry.URL)
			})
			r := newTestRemote(t, Options{URL: registry.url(), Credentials: credentials})
			head, err := r.Resolve(t.Context())
			var s *Snapshot
			if err == nil {
				s, err = r.Fetch(t.Context(), head)
			}
			asked := objects.requests()
			for _, request := range asked {
				assert.Empty(t, request.Header.Get("Authorization"))
				assert.Empty(t, request.TLS.PeerCertificates, "the certificate is for the registry")
			}
			assert.Empty(t, plain.requests())
			switch {
			case c.says == "":
				require.NoError(t, err)
				assert.Equal(t, "x", readSnapshotFile(t, s, "a"))
				require.Len(t, asked, 1)
				assert.Equal(t, "signature=secret", asked[0].URL.RawQuery)
			case name == "led back":
				require.ErrorContains(t, err, c.says)
				require.Len(t, atRegistry, 1)
				assert.Empty(t, <-atRegistry, "who was led away stays without credentials")
			default:
				require.ErrorContains(t, err, c.says)
				assert.NotContains(t, err.Error(), "secret")
				assert.Empty(t, asked)
			}
		})
	}
}

// TestInsecureRegistryRedirectsToHTTP: insecure permits a store without TLS as well.
func TestInsecureRegistryRedirectsToHTTP(t *testing.T) {
	registry := newRegistry(t)
	files := buildArchive(t, archivedFile{name: "a", content: "x"})
	registry.push(t, "latest", fluxContent, files)
	objects := newBlobStoreServer(t, httptest.NewServer, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(files) })
	registry.reset(func(w http.ResponseWriter, r *http.Request) bool {
		if strings.Contains(r.URL.Path, "/blobs/") {
			http.Redirect(w, r, objects.URL, http.StatusTemporaryRedirect)
			return true
		}
		return false
	})
	insecure := httptest.NewServer(registry.Config.Handler)
	t.Cleanup(insecure.Close)
	s := resolveAndFetch(t, newTestRemote(t, Options{URL: strings.Replace(insecure.URL, "http", "oci", 1) + "/landscapes/prod", Insecure: true}))
	assert.Equal(t, "x", readSnapshotFile(t, s, "a"))
	assert.Len(t, objects.requests(), 1)
}

// TestProxiedRegistryCannotRedirectToLocalAddress: a registry behind a proxy is not on this
// machine, and must not redirect to it.
func TestProxiedRegistryCannotRedirectToLocalAddress(t *testing.T) {
	registry := newRegistry(t)
	files := buildArchive(t, archivedFile{name: "a", content: "x"})
	registry.push(t, "latest", fluxContent, files)
	proxy := newBlobStoreServer(t, httptest.NewServer, func(w http.ResponseWriter, _ *http.Request) {
		target, err := net.Dial("tcp", registry.Listener.Addr().String())
		if err != nil {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		defer target.Close()
		client, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer client.Close()
		_, _ = client.Write([]byte("HTTP/1.1 200 OK\r\n\r\n"))
		go func() { _, _ = io.Copy(target, client) }()
		_, _ = io.Copy(client, target)
	})
	through, err := ProxyOf(map[string][]byte{"address": []byte(proxy.URL)})
	require.NoError(t, err)
	for _, host := range []string{"localhost", "x.LOCALHOST.", "127.0.0.1", "[::1]", "[::ffff:127.0.0.1]", "0.0.0.0"} {
		registry.reset(func(w http.ResponseWriter, r *http.Request) bool {
			if strings.Contains(r.URL.Path, "/blobs/") {
				http.Redirect(w, r, fmt.Sprintf("https://%s:8443/", host), http.StatusTemporaryRedirect)
				return true
			}
			return false
		})
		r := newTestRemote(t, Options{URL: "oci://registry.example.com/landscapes/prod", Credentials: registry.credentials(), Proxy: through})
		head, err := r.Resolve(t.Context())
		require.NoError(t, err)
		_, err = r.Fetch(t.Context(), head)
		requireReason(t, ReasonUnreachable, err)
		require.ErrorContains(t, err, "it is an address of this machine", host)
	}
	for _, request := range proxy.requests() {
		assert.Equal(t, "registry.example.com:443", request.Host)
	}
}

// TestIsAddressAllowed: the resolved address decides, compared with the registry's address.
func TestIsAddressAllowed(t *testing.T) {
	for _, c := range []struct {
		registry, to string
		want         bool
	}{
		{"192.0.2.1", "198.51.100.7", true},
		{"192.0.2.1", "10.0.0.7", true},
		{"192.0.2.1", "127.0.0.1", false},
		{"192.0.2.1", "::ffff:127.0.0.1", false},
		{"192.0.2.1", "::1", false},
		{"192.0.2.1", "::", false},
		{"192.0.2.1", "169.254.169.254", false},
		{"192.0.2.1", "fe80::1", false},
		{"192.0.2.1", "224.0.0.1", false},
		{"127.0.0.1", "::1", true},
		{"127.0.0.1", "169.254.169.254", false},
		{"169.254.1.1", "169.254.1.2", true},
		{"169.254.1.1", "127.0.0.1", false},
	} {
		r := &registryDialer{address: "registry.example.com:443"}
		last := netip.MustParseAddr(c.registry)
		r.lastAddress.Store(&last)
		assert.Equal(t, c.want, r.isAddressAllowed(netip.MustParseAddr(c.to)), "%s to %s", c.registry, c.to)
		err := r.checkAddress("tcp", netip.AddrPortFrom(netip.MustParseAddr(c.to), 443).String(), nil)
		assert.Equal(t, c.want, err == nil, "%v", err)
	}
	asNamed := &registryDialer{address: "[::1]:443"}
	assert.True(t, asNamed.isAddressAllowed(netip.MustParseAddr("127.0.0.1")))
	assert.False(t, asNamed.isAddressAllowed(netip.MustParseAddr("169.254.169.254")))

	// Control applies to actual connections.
	target := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(target.Close)
	r := &registryDialer{address: "registry.example.com:443"}
	dialer := net.Dialer{Control: r.checkAddress}
	_, err := dialer.DialContext(t.Context(), "tcp", target.Listener.Addr().String())
	requireReason(t, ReasonUnreachable, err)
	r.address = target.Listener.Addr().String()
	connection, err := r.dial(t.Context(), "tcp", r.address)
	require.NoError(t, err)
	require.NoError(t, connection.Close())
	connection, err = dialer.DialContext(t.Context(), "tcp", target.Listener.Addr().String())
	require.NoError(t, err)
	require.NoError(t, connection.Close())
}
