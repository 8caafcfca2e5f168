// SPDX-License-Identifier: Apache-2.0

package adoption

// This file serves the Gardener API of an adopted landscape instead of gardener-apiserver.

import (
	"crypto/tls"
	"encoding/base64"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/pergola-dev/pergola/controllers/landscape"
)

// endpointPatch patches the address of the Gardener API into the rendered objects, because played
// pods are not reachable. patchEndpoints does so for recorded ones.
const endpointPatch = `
patches:
- target: {kind: Endpoints, name: gardener-apiserver}
  patch: |
    - {op: replace, path: /subsets/0/addresses/0/ip, value: ADDRESS}
    - {op: replace, path: /subsets/0/ports/0/port, value: PORT}
- target: {kind: EndpointSlice, name: gardener-apiserver}
  patch: |
    - {op: replace, path: /endpoints/0/addresses/0, value: ADDRESS}
    - {op: replace, path: /ports/0/port, value: PORT}
`

// serveGardenAPI imitates gardener-apiserver: it has its certificate and forwards to a cluster that
// has the Gardener API as CRDs.
func (u *upstream) serveGardenAPI() {
	u.Helper()
	certificate := u.get(landscape.Runtime, secretsResource, "garden", u.replacements["gardener-apiserver-9ec653e5"])
	require.NotNil(u, certificate)
	pair := map[string][]byte{}
	for _, key := range []string{"tls.crt", "tls.key"} {
		var err error
		pair[key], err = base64.StdEncoding.DecodeString(stringField(certificate, "data", key))
		require.NoError(u, err)
	}
	loaded, err := tls.X509KeyPair(pair["tls.crt"], pair["tls.key"])
	require.NoError(u, err)
	config := u.world.configs[gardenAPI]
	transport, err := rest.TransportFor(config)
	require.NoError(u, err)
	target, err := url.Parse(config.Host)
	require.NoError(u, err)
	proxy := &httputil.ReverseProxy{Transport: transport, FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(target)
		for name := range r.Out.Header {
			if strings.HasPrefix(name, "X-Remote-") {
				r.Out.Header.Del(name)
			}
		}
	}}
	listener, err := net.Listen("tcp", net.JoinHostPort(u.host.String(), "0"))
	require.NoError(u, err)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasPrefix(r.URL.Path, "/apis") {
			http.NotFound(w, r)
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	require.NoError(u, server.Listener.Close())
	server.Listener, server.TLS = listener, &tls.Config{Certificates: []tls.Certificate{loaded}, MinVersion: tls.VersionTLS12}
	server.StartTLS()
	u.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	_, port, err := net.SplitHostPort(listener.Addr().String())
	require.NoError(u, err)
	u.port, err = strconv.ParseInt(port, 10, 64)
	require.NoError(u, err)
	require.NoError(u, os.MkdirAll(u.path("components/garden/gardener-apiserver"), 0o755))
	u.write("components/garden/gardener-apiserver/kustomization.yaml", strings.NewReplacer("ADDRESS", u.host.String(), "PORT", port).Replace(endpointPatch))
}

// patchEndpoints changes a recorded object as the patch changes the rendered one.
func (u *upstream) patchEndpoints(r recordedObject) {
	u.Helper()
	switch r.key() {
	case "Endpoints/kube-system/gardener-apiserver":
		r.Object["subsets"] = []any{map[string]any{"addresses": []any{map[string]any{"ip": u.host.String()}}, "ports": []any{map[string]any{"port": u.port, "protocol": "TCP"}}}}
	case "EndpointSlice/kube-system/gardener-apiserver":
		r.Object["endpoints"].([]any)[0].(map[string]any)["addresses"] = []any{u.host.String()}
		r.Object["ports"].([]any)[0].(map[string]any)["port"] = u.port
	}
}

// hostAddress returns an address of this machine that is valid in an Endpoints object, which
// excludes loopback.
func hostAddress(t *testing.T) net.IP {
	t.Helper()
	found, err := net.InterfaceAddrs()
	require.NoError(t, err)
	for _, a := range found {
		if network, is := a.(*net.IPNet); is && network.IP.To4() != nil && network.IP.IsGlobalUnicast() {
			return network.IP
		}
	}
	t.Skip("this machine has no address but the loopback's, which API servers do not take for that of gardener-apiserver")
	return nil
}
