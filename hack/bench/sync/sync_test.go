// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// TestCountingProxy checks that a door forwards and counts requests, and records when a Shoot is
// applied.
func TestCountingProxy(t *testing.T) {
	var asked []string
	behind := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Method+" "+r.URL.Path)
		w.WriteHeader(http.StatusNoContent)
	}))
	defer behind.Close()
	d, err := newCountingProxy(&rest.Config{Host: behind.URL})
	require.NoError(t, err)
	defer d.Close()
	text, err := d.kubeconfig()
	require.NoError(t, err)
	config, err := clientcmd.RESTConfigFromKubeConfig(text)
	require.NoError(t, err)
	client, err := rest.HTTPClientFor(config)
	require.NoError(t, err)
	ask := func(method, path, content string) {
		req, err := http.NewRequestWithContext(t.Context(), method, config.Host+path, nil)
		require.NoError(t, err)
		req.Header.Set("Content-Type", content)
		res, err := client.Do(req)
		require.NoError(t, err)
		require.NoError(t, res.Body.Close())
		assert.Equal(t, http.StatusNoContent, res.StatusCode)
	}

	applied := d.nextApply("shoots")
	shoots := "/apis/core.gardener.cloud/v1beta1/namespaces/garden-a/shoots"
	ask(http.MethodGet, shoots, "")
	ask(http.MethodPatch, shoots+"/b/status", "application/apply-patch+yaml")
	ask(http.MethodPatch, shoots+"/b", "application/merge-patch+json")
	assert.Empty(t, applied)
	before := time.Now()
	ask(http.MethodPatch, shoots+"/b", "application/apply-patch+yaml")
	ask(http.MethodPatch, shoots+"/c", "application/apply-patch+yaml")
	at := <-applied
	assert.False(t, at.Before(before))
	assert.Empty(t, applied, "only the first")
	ask(http.MethodGet, "/version", "")
	assert.Equal(t, map[string]int{"list shoots": 1, "apply shoots/status": 1, "patch shoots": 1, "apply shoots": 2, "discovery": 1}, d.snapshot())
	assert.Len(t, asked, 6)
}

// TestRepository checks that the Git server counts requests of others, not of the benchmark.
func TestRepository(t *testing.T) {
	landscape := t.TempDir()
	shoots := filepath.Join(landscape, "projects", "a", "shoots")
	require.NoError(t, os.MkdirAll(shoots, 0o755))
	for _, name := range []string{"one", "two"} {
		require.NoError(t, os.WriteFile(filepath.Join(shoots, name+".yaml"), []byte("labels:\n  revision: \"0\"\n"), 0o644))
	}
	r, err := newRepository(t.Context(), t.TempDir(), landscape)
	require.NoError(t, err)
	defer r.Close()
	clone := filepath.Join(t.TempDir(), "clone")
	_, err = git(t.Context(), "-c", benchHeaderConfig, "clone", "-q", r.cloneURL(), clone)
	require.NoError(t, err)
	assert.Empty(t, r.snapshot())

	require.NoError(t, r.change(1))
	commit, err := r.push(t.Context(), "change")
	require.NoError(t, err)
	_, err = git(t.Context(), "-C", clone, "pull", "-q")
	require.NoError(t, err)
	head, err := git(t.Context(), "-C", clone, "rev-parse", "HEAD")
	require.NoError(t, err)
	assert.Equal(t, commit, head)
	assert.Positive(t, r.snapshot()["git info/refs"])
	assert.Positive(t, r.snapshot()["git git-upload-pack"])
	changed, err := os.ReadFile(filepath.Join(clone, "projects", "a", "shoots", "two.yaml"))
	require.NoError(t, err)
	assert.Equal(t, "labels:\n  revision: \"change-1\"\n", string(changed))
}

func TestLatency(t *testing.T) {
	var took []time.Duration
	for i := range 100 {
		took = append(took, time.Duration(100-i)*time.Millisecond)
	}
	assert.Equal(t, &latency{Median: 0.051, P95: 0.096, P99: 0.1, Max: 0.1, Count: 100}, latencyOf(took))
	assert.Nil(t, latencyOf(nil))
}

func TestSubtractCounts(t *testing.T) {
	assert.Equal(t, map[string]int{"get a": 2, "get c": 1}, subtractCounts(map[string]int{"get a": 3, "get b": 1, "get c": 1}, map[string]int{"get a": 1, "get b": 1}))
}
