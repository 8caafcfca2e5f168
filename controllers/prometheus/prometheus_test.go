// SPDX-License-Identifier: Apache-2.0

package prometheus

import (
	"context"
	"encoding/base64"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/api"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"
)

// queryResponse returns a Prometheus answer with samples in the form `LABELS VALUE`.
func queryResponse(samples ...string) string {
	var out []string
	for _, s := range samples {
		labels, value, _ := strings.Cut(s, " ")
		out = append(out, fmt.Sprintf(`{"metric": {%s}, "value": [1767225600, %q]}`, labels, value))
	}
	return `{"status": "success", "data": {"resultType": "vector", "result": [` + strings.Join(out, ", ") + `]}}`
}

const (
	healthySample   = `"__name__":"healthcheck:up" 1`
	unhealthySample = `"__name__":"healthcheck:up","job":"etcd","task":"target:down" 0`
)

// newPrometheusServer is a Prometheus with a fixed answer to the query.
func newPrometheusServer(t *testing.T, status int, body string) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/api/v1/query" || r.FormValue("query") != "healthcheck:up" || r.FormValue("time") != "" {
			http.Error(w, "unexpected "+r.URL.String(), http.StatusTeapot)
			return
		}
		w.WriteHeader(status)
		fmt.Fprint(w, body)
	}))
	t.Cleanup(s.Close)
	return s
}

func TestCheck(t *testing.T) {
	long := make([]string, 0, 100)
	for i := range 100 {
		long = append(long, fmt.Sprintf(`"__name__":"healthcheck:up","job":"j%02d","task":"target:down" 0`, i))
	}
	for name, c := range map[string]struct {
		status       int
		body         string
		trouble, err string
	}{
		"all is well": {200, queryResponse(healthySample), "", ""},
		"a target":    {200, queryResponse(unhealthySample), `healthcheck:up{job="etcd", task="target:down"} => 0`, ""},
		"two, in any order": {200, queryResponse(unhealthySample, `"__name__":"healthcheck:up","job":"a","task":"target:down" 0`),
			`healthcheck:up{job="a", task="target:down"} => 0, healthcheck:up{job="etcd", task="target:down"} => 0`, ""},
		"no rules":               {200, queryResponse(), "", "it has no series healthcheck:up: its rules have not been evaluated yet, or are missing"},
		"well and not":           {200, queryResponse(healthySample, unhealthySample), "", `it contradicts itself: healthcheck:up => 1, healthcheck:up{job="etcd", task="target:down"} => 0`},
		"well twice":             {200, queryResponse(healthySample, `"job":"a" 1`), "", `it contradicts itself: healthcheck:up => 1, {job="a"} => 1`},
		"another value":          {200, queryResponse(`"__name__":"healthcheck:up" 0.5`), "", "it contradicts itself: healthcheck:up => 0.5"},
		"no number":              {200, queryResponse(`"__name__":"healthcheck:up" NaN`), "", "it contradicts itself: healthcheck:up => NaN"},
		"a scalar":               {200, `{"status": "success", "data": {"resultType": "scalar", "result": [1767225600, "1"]}}`, "", "querying healthcheck:up: the answer is a scalar instead of a vector"},
		"with a warning":         {200, `{"status": "success", "warnings": ["remote read failed"], "data": {"resultType": "vector", "result": []}}`, "", "querying healthcheck:up: the server warns: remote read failed"},
		"an error of the query":  {422, `{"status": "error", "errorType": "execution", "error": "too many samples"}`, "", "querying healthcheck:up: execution: too many samples"},
		"a server that starts":   {503, `Service Unavailable`, "", "querying healthcheck:up: "},
		"a page of somebody":     {200, `<html>`, "", "querying healthcheck:up: bad_response: "},
		"more than can be told":  {200, queryResponse(long...), `healthcheck:up{job="j00", task="target:down"} => 0, `, ""},
		"another server's error": {404, `not here`, "", "querying healthcheck:up: client_error: "},
	} {
		t.Run(name, func(t *testing.T) {
			client, err := api.NewClient(api.Config{Address: newPrometheusServer(t, c.status, c.body).URL})
			require.NoError(t, err)
			trouble, err := Check(t.Context(), client)
			if c.err != "" {
				require.ErrorContains(t, err, c.err)
				assert.Empty(t, trouble)
				return
			}
			require.NoError(t, err)
			if len(c.body) > 1000 {
				assert.LessOrEqual(t, len(trouble), maxProblemBytes+len("…"))
				assert.True(t, strings.HasPrefix(trouble, c.trouble) && strings.HasSuffix(trouble, "…"), trouble)
				return
			}
			assert.Equal(t, c.trouble, trouble)
		})
	}
}

// TestCheckTimeout: a silent server does not outlast the caller's context.
func TestCheckTimeout(t *testing.T) {
	silent := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-silent }))
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(silent) })
	client, err := api.NewClient(api.Config{Address: server.URL})
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err = Check(ctx, client)
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

// TestInClusterAccess: in the cluster a server has the name of its pod.
func TestInClusterAccess(t *testing.T) {
	server := newPrometheusServer(t, 200, queryResponse(healthySample))
	var dialed string
	reach := InClusterAccess(&rest.Config{Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
		dialed = address
		return (&net.Dialer{}).DialContext(ctx, network, server.Listener.Addr().String())
	}})
	assert.False(t, reach.MayBeBlocked)
	client, err := reach.NewClient("garden", PodName("longterm", 1))
	require.NoError(t, err)
	trouble, err := Check(t.Context(), client)
	require.NoError(t, err)
	assert.Empty(t, trouble)
	assert.Equal(t, "prometheus-longterm-1.prometheus-operated.garden.svc:9090", dialed)
}

// TestAPIServerAccess: from elsewhere the request goes through the API server with the kubeconfig's
// user, even with read access only.
func TestAPIServerAccess(t *testing.T) {
	asked := make(chan string, 9)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- r.Method + " " + r.URL.Path
		assert.Equal(t, "Basic "+base64.StdEncoding.EncodeToString([]byte("admin:secret")), r.Header.Get("Authorization"))
		assert.Equal(t, HealthQuery, r.FormValue("query"))
		if r.Method != http.MethodGet {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		fmt.Fprint(w, queryResponse(unhealthySample))
	}))
	t.Cleanup(server.Close)
	reach := APIServerAccess(&rest.Config{Host: server.URL + "/behind", Username: "admin", Password: "secret"})
	assert.True(t, reach.MayBeBlocked)
	client, err := reach.NewClient("garden", PodName("garden", 0))
	require.NoError(t, err)
	trouble, err := Check(t.Context(), client)
	require.NoError(t, err)
	assert.Contains(t, trouble, "target:down")
	const path = "/behind/api/v1/namespaces/garden/pods/prometheus-garden-0:9090/proxy/api/v1/query"
	assert.Equal(t, "POST "+path, <-asked)
	assert.Equal(t, "GET "+path, <-asked)
	assert.Empty(t, asked)

	_, err = APIServerAccess(&rest.Config{Host: server.URL, TLSClientConfig: rest.TLSClientConfig{CertData: []byte("hunter2"), KeyData: []byte("hunter2")}}).NewClient("garden", "p")
	require.Error(t, err)
	assert.NotContains(t, err.Error(), "hunter2")
}
