// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"
)

// TestAddressesHideUsers: a user in the address of a cluster is sent, and no error contains it.
func TestAddressesHideUsers(t *testing.T) {
	var user, password string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, password, _ = r.BasicAuth()
		http.Error(w, "no", http.StatusTeapot)
	}))
	defer server.Close()
	c, err := newCluster("a", &rest.Config{Host: strings.Replace(server.URL, "://", "://bot:hunter2@", 1)}, ClusterOptions{})
	require.NoError(t, err)
	defer c.Close()
	_, err = c.GetLive(t.Context(), Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: "a", Name: "a"})
	require.Error(t, err)
	assert.Equal(t, []string{"bot", "hunter2"}, []string{user, password})

	server.Close()
	_, err = c.GetLive(t.Context(), Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: "a", Name: "a"})
	require.Error(t, err)
	assert.NotContains(t, err.Error(), "bot")
	assert.NotContains(t, c.RESTConfig().Host, "hunter2")

	_, err = newCluster("a", &rest.Config{Host: "https://bot:ab/hunter2@127.0.0.1:1"}, ClusterOptions{})
	require.Error(t, err)
	assert.NotContains(t, err.Error(), "hunter2")
}
