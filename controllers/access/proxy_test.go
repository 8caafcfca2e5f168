// SPDX-License-Identifier: Apache-2.0

package access

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// rejectingProxy counts requests and rejects them.
type rejectingProxy struct {
	*httptest.Server
	requests []string
}

func newRejectingProxy(t *testing.T) *rejectingProxy {
	t.Helper()
	p := &rejectingProxy{}
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.requests = append(p.requests, r.Method+" "+r.Host)
		w.WriteHeader(http.StatusBadGateway)
	}))
	t.Cleanup(p.Close)
	return p
}

// TestProxyOfSecretCluster checks that requests use the proxy of the Secret's cluster unless the
// kubeconfig has its own.
func TestProxyOfSecretCluster(t *testing.T) {
	given, own := newRejectingProxy(t), newRejectingProxy(t)
	address, err := url.Parse(given.URL)
	require.NoError(t, err)
	s := newTokenServer(t, "one")
	server, err := url.Parse(s.URL)
	require.NoError(t, err)
	for name, c := range map[string]struct {
		own            bool
		expect, others *rejectingProxy
	}{"given": {expect: given, others: own}, "its own": {own: true, expect: own, others: given}} {
		t.Run(name, func(t *testing.T) {
			given.requests, own.requests = nil, nil
			p := &secretStore{}
			p.setSecret(s.kubeconfig(t, func(cluster *clientcmdapi.Cluster, _ *clientcmdapi.AuthInfo) {
				if c.own {
					cluster.ProxyURL = own.URL
				}
			}), nil)
			l := newConnectionTest(t, p)
			source := VirtualGardenSource(p.readSecret, l.clock)
			source.Proxy = http.ProxyURL(address)
			l.config = LazyConfig(source)
			_, _, err := l.send(http.MethodGet, "")
			require.ErrorContains(t, err, "Bad Gateway")
			assert.Contains(t, c.expect.requests, "CONNECT "+server.Host)
			assert.Empty(t, c.others.requests)
		})
	}
}
