// SPDX-License-Identifier: Apache-2.0

package landscape

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/pergola-dev/pergola/components"
	"github.com/pergola-dev/pergola/controllers/access"
	"github.com/pergola-dev/pergola/controllers/owner"
	"github.com/pergola-dev/pergola/landscapes"
)

type roundTripFunc func(*http.Request) (*http.Response, error)

func (a roundTripFunc) RoundTrip(req *http.Request) (*http.Response, error) { return a(req) }

// TestConnectionOfAShootFollowsItsDomain checks that a connection uses the domain of the Shoot in
// the virtual garden, which Git need not declare.
func TestConnectionOfAShootFollowsItsDomain(t *testing.T) {
	secret, err := json.Marshal(&corev1.Secret{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		Data: map[string][]byte{access.KubeconfigKey: []byte(`{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c, user: u}}],
			clusters: [{name: c, cluster: {server: "https://kube-apiserver"}}], users: [{name: u, user: {token: t}}]}`)},
	})
	require.NoError(t, err)
	var asked []string
	refused := errors.New("no way out of this test")
	seed := &rest.Config{
		Host:  "https://127.0.0.1:1",
		Proxy: func(req *http.Request) (*url.URL, error) { asked = append(asked, req.URL.Host); return nil, refused },
		WrapTransport: func(http.RoundTripper) http.RoundTripper {
			return roundTripFunc(func(req *http.Request) (*http.Response, error) {
				header := http.Header{"Content-Type": {"application/json"}}
				return &http.Response{StatusCode: http.StatusOK, Header: header, Body: io.NopCloser(strings.NewReader(string(secret))), Request: req}, nil
			})
		},
	}
	l, _, err := landscapes.Load(t.Context(), "../../landscapes/local", landscapes.Options{})
	require.NoError(t, err)
	other := func() *rest.Config { return &rest.Config{Host: "https://127.0.0.1:1"} }
	clock := clocktesting.NewFakeClock(noon)
	c, err := New(l, Options{Catalogue: components.FS, Clock: clock,
		Connections: Connections{Configs: map[string]*rest.Config{Runtime: other(), Virtual: other(), "local": seed}}})
	require.NoError(t, err)
	defer c.Close()

	at := slices.IndexFunc(c.members.all, func(m *convergedOwner) bool { return m.Input.Owner.Kind == owner.Shoot })
	require.GreaterOrEqual(t, at, 0)
	m := c.members.all[at]
	sends, err := rest.TransportFor(m.Target.RESTConfig())
	require.NoError(t, err)
	for _, domain := range []string{"one.example.org", "two.example.org"} {
		m.Input.Objects = map[string]map[string]any{owner.Shoot: {"spec": map[string]any{"dns": map[string]any{"domain": domain}}}}
		clock.Step(time.Hour) // the access expires
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://kube-apiserver/readyz", nil)
		require.NoError(t, err)
		_, err = sends.RoundTrip(req)
		require.ErrorIs(t, err, refused)
	}
	assert.Equal(t, []string{"api.one.example.org", "api.two.example.org"}, slices.Compact(asked))
}
