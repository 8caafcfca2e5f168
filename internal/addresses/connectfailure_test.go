// SPDX-License-Identifier: Apache-2.0

package addresses

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestIsConnectFailure(t *testing.T) {
	for code, want := range map[int]bool{
		http.StatusBadGateway: true, http.StatusServiceUnavailable: true, http.StatusGatewayTimeout: true,
		// the next request may succeed only after someone acts
		http.StatusForbidden: false, http.StatusProxyAuthRequired: false,
	} {
		proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }))
		address, err := url.Parse(proxy.URL)
		require.NoError(t, err)
		client := &http.Client{Transport: &http.Transport{Proxy: http.ProxyURL(address)}}
		_, err = client.Get("https://api.example.org/version")
		require.Error(t, err)
		assert.Equal(t, want, IsConnectFailure(err), "%d: %s", code, err)
		proxy.Close()
	}
	_, err := http.Get("http://127.0.0.1:1/")
	assert.True(t, IsConnectFailure(err), err)
	_, err = (&http.Client{Transport: &http.Transport{Proxy: http.ProxyURL(&url.URL{Scheme: "http", Host: "127.0.0.1:1"})}}).Get("https://api.example.org/version")
	assert.True(t, IsConnectFailure(err), "the proxy is not there: %v", err)
	_, err = http.Get("http://nowhere.invalid/")
	assert.True(t, IsConnectFailure(err), err)
	server := httptest.NewTLSServer(http.NotFoundHandler())
	defer server.Close()
	_, err = http.Get(server.URL)
	assert.True(t, IsConnectFailure(err), "nobody trusts it: %v", err)
	assert.False(t, IsConnectFailure(nil))
	assert.False(t, IsConnectFailure(errors.New("the API server says Bad Gateway")))
}
