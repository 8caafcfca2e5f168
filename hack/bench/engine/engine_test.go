// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/pergola-dev/pergola/hack/apiserver"
)

var config *rest.Config

func TestMain(m *testing.M) {
	os.Exit(apiserver.Main(m, func(c *rest.Config) { config = c }))
}

// TestBundleObjects checks the objects that all contenders get; their kinds are known here.
func TestBundleObjects(t *testing.T) {
	list, err := bundleObjects(7, "v")
	require.NoError(t, err)
	require.Len(t, list, 4)
	assert.Equal(t, "v", valueOf(list[0]))
	for _, o := range list {
		assert.Contains(t, resourcesByKind(), o.GetKind())
		assert.Equal(t, "b0007", o.GetName())
		assert.Equal(t, bundleNamespace, o.GetNamespace())
	}
	assert.NotContains(t, bundleManifest(7, "v"), "${")
}

// TestPackArchive checks that the archive is complete: Flux rejects it otherwise.
func TestPackArchive(t *testing.T) {
	raw, err := packArchive("bundle.yaml", bundleTemplate)
	require.NoError(t, err)
	unzipped, err := gzip.NewReader(bytes.NewReader(raw))
	require.NoError(t, err)
	archive := tar.NewReader(unzipped)
	header, err := archive.Next()
	require.NoError(t, err)
	assert.Equal(t, "bundle.yaml", header.Name)
	text, err := io.ReadAll(archive)
	require.NoError(t, err)
	assert.Equal(t, bundleTemplate, string(text))
	_, err = archive.Next()
	assert.Equal(t, io.EOF, err)
}

func TestMetrics(t *testing.T) {
	text := `# HELP apiserver_request_total x
apiserver_request_total{code="200",resource="configmaps",subresource="",verb="APPLY"} 3
apiserver_request_total{code="201",resource="configmaps",subresource="",verb="APPLY"} 1e+03
apiserver_request_total_of_others{verb="APPLY"} 5
other 7
`
	sum := 0.0
	require.NoError(t, eachMetric(strings.NewReader(text), "apiserver_request_total{", func(_ string, labels map[string]string, value float64) {
		assert.Equal(t, "configmaps", labels["resource"])
		assert.Empty(t, labels["subresource"])
		sum += value
	}))
	assert.InDelta(t, 1003, sum, 0)
	assert.Error(t, eachMetric(strings.NewReader("apiserver_request_total{} many\n"), "apiserver_request_total{", func(string, map[string]string, float64) {}))
}

func TestRequestKey(t *testing.T) {
	assert.Equal(t, "patch managedresources/status", requestKey("patch", "managedresources", "status"))
	assert.Empty(t, requestKey("watch", "configmaps", ""))
	assert.Empty(t, requestKey("create", "ipaddresses", ""))
	assert.Equal(t, "create", verbOf("POST"))
	assert.Equal(t, "update", verbOf("PUT"))
	assert.Equal(t, "list", verbOf("LIST"))
}

func TestLatency(t *testing.T) {
	var took []time.Duration
	for i := range 100 {
		took = append(took, time.Duration(100-i)*time.Millisecond)
	}
	l := latencyOf(took)
	assert.InDelta(t, 0.051, l.Median, 1e-9)
	assert.InDelta(t, 0.096, l.P95, 1e-9)
	assert.InDelta(t, 0.1, l.Max, 1e-9)
	assert.Nil(t, latencyOf(nil))
}

// TestRequests checks that requests of others are counted, and requests of the benchmark are not.
func TestRequests(t *testing.T) {
	apiserver.SkipIfUnavailable(t)
	s := testServer(t)
	other := testServer(t)
	ctx := t.Context()
	require.NoError(t, s.createNamespace(ctx, bundleNamespace))
	list, err := bundleObjects(1, "a")
	require.NoError(t, err)
	before, err := s.countRequests(ctx)
	require.NoError(t, err)
	require.NoError(t, s.apply(ctx, list[0]))
	require.NoError(t, s.patch(ctx, "ConfigMap", "b0001", map[string]any{"data": map[string]any{"x": "y"}}))
	follower, err := s.follow(ctx, "ConfigMap")
	require.NoError(t, err)
	defer follower.stop()
	list[0].Object["data"].(map[string]any)["value"] = "b"
	require.NoError(t, other.apply(ctx, list[0]))
	for _, o := range list[1:] {
		require.NoError(t, other.apply(ctx, o))
	}
	limited, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	_, err = follower.waitUntil(limited, []string{"b0001"}, func(o *unstructured.Unstructured) bool { return valueOf(o) == "b" })
	require.NoError(t, err)
	want := requestCounts{"apply configmaps": 1, "apply serviceaccounts": 1, "apply roles": 1, "apply services": 1}
	// A request is counted a moment after its answer.
	var have requestCounts
	require.Eventually(t, func() bool {
		after, err := s.countRequests(ctx)
		have = after.subtract(before)
		// The API server creates the Service kubernetes and an Event about its address ranges some
		// time after it starts to answer.
		delete(have, "create services")
		delete(have, "create events")
		return err == nil && assert.ObjectsAreEqual(want, have)
	}, 30*time.Second, 50*time.Millisecond, "%v", &have)
}

func testServer(t *testing.T) *server {
	t.Helper()
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, clientcmd.WriteToFile(clientcmdapi.Config{
		CurrentContext: "c", Contexts: map[string]*clientcmdapi.Context{"c": {Cluster: "c", AuthInfo: "c"}},
		Clusters:  map[string]*clientcmdapi.Cluster{"c": {Server: config.Host, CertificateAuthorityData: config.CAData}},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{"c": {ClientCertificateData: config.CertData, ClientKeyData: config.KeyData}},
	}, kubeconfig))
	s, err := newServer(arguments{kubeconfig: kubeconfig})
	require.NoError(t, err)
	return s
}

// TestRequestsFail checks that missing metrics are an error, not zero requests.
func TestRequestsFail(t *testing.T) {
	h := httptest.NewServer(http.NotFoundHandler())
	defer h.Close()
	s := &server{config: &rest.Config{Host: h.URL}, http: h.Client(), ownRequests: newCounter()}
	_, err := s.countRequests(t.Context())
	assert.Error(t, err)
}
