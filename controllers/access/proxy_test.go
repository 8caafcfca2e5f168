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

// proxy counts requests and rejects them.
type proxy struct {
	*httptest.Server
	asked []string
}

func newProxy(t *testing.T) *proxy {
	t.Helper()
	p := &proxy{}
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.asked = append(p.asked, r.Method+" "+r.Host)
		w.WriteHeader(http.StatusBadGateway)
	}))
	t.Cleanup(p.Close)
	return p
}

// TestProxy checks that requests use the proxy of the Secret's cluster unless the kubeconfig has
// its own.
func TestProxy(t *testing.T) {
	given, own := newProxy(t), newProxy(t)
	address, err := url.Parse(given.URL)
	require.NoError(t, err)
	s := newServer(t, "one")
	server, err := url.Parse(s.URL)
	require.NoError(t, err)
	for name, c := range map[string]struct {
		own            bool
		expect, others *proxy
	}{"given": {expect: given, others: own}, "its own": {own: true, expect: own, others: given}} {
		t.Run(name, func(t *testing.T) {
			given.asked, own.asked = nil, nil
			p := &place{}
			p.put(s.kubeconfig(t, func(cluster *clientcmdapi.Cluster, _ *clientcmdapi.AuthInfo) {
				if c.own {
					cluster.ProxyURL = own.URL
				}
			}), nil)
			l := newLate(t, p)
			source := OfVirtualGarden(p.read, l.clock)
			source.Proxy = http.ProxyURL(address)
			l.config = Late(source)
			_, _, err := l.send(http.MethodGet, "")
			require.ErrorContains(t, err, "Bad Gateway")
			assert.Contains(t, c.expect.asked, "CONNECT "+server.Host)
			assert.Empty(t, c.others.asked)
		})
	}
}
