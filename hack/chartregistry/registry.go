// SPDX-License-Identifier: Apache-2.0

// Package chartregistry is a registry of charts for tests: it serves HTTPS with its own certificate
// authority and requires a login.
package chartregistry

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"cuelabs.dev/go/oci/ociregistry"
	"cuelabs.dev/go/oci/ociregistry/ocimem"
	"cuelabs.dev/go/oci/ociregistry/ociserver"
	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/stretchr/testify/require"
)

// Password is the password that the registry accepts from any user.
const Password = "right"

// Repository is the name of the repository that has the charts.
const Repository = "charts/watcher"

// Registry runs until its test ends.
type Registry struct {
	server  *httptest.Server
	backend *ocimem.Registry
	// RequestCount counts the requests.
	RequestCount atomic.Int64
	// Unavailable makes the registry answer 503.
	Unavailable atomic.Bool
}

// New starts a registry without charts.
func New(t testing.TB) *Registry {
	r := &Registry{backend: ocimem.New()}
	handler := ociserver.New(r.backend, nil)
	r.server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		r.RequestCount.Add(1)
		if _, password, _ := q.BasicAuth(); password != Password {
			w.Header().Set("WWW-Authenticate", `Basic realm="test"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		if r.Unavailable.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		handler.ServeHTTP(w, q)
	}))
	t.Cleanup(r.server.Close)
	return r
}

// Host returns the address of the registry.
func (r *Registry) Host() string { return strings.TrimPrefix(r.server.URL, "https://") }

// CA returns the certificate authority of the registry, in PEM form.
func (r *Registry) CA() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: r.server.Certificate().Raw})
}

// DockerConfigJSON returns the content of a Secret of type kubernetes.io/dockerconfigjson.
func (r *Registry) DockerConfigJSON(t testing.TB, password string) []byte {
	t.Helper()
	raw, err := json.Marshal(map[string]any{"auths": map[string]any{r.Host(): map[string]any{"username": "robot", "password": password}}})
	require.NoError(t, err)
	return raw
}

// Push pushes a chart as `helm push` does, and returns its digest.
func (r *Registry) Push(t testing.TB, tag string, files map[string]string) string {
	t.Helper()
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	w := tar.NewWriter(z)
	for name, content := range files {
		require.NoError(t, w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(content)), Typeflag: tar.TypeReg}))
		_, err := w.Write([]byte(content))
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	require.NoError(t, z.Close())
	blob := func(kind string, data []byte) ocispec.Descriptor {
		d := ocispec.Descriptor{MediaType: kind, Digest: digest.FromBytes(data), Size: int64(len(data))}
		_, err := r.backend.PushBlob(context.Background(), Repository, ociregistry.Descriptor(d), bytes.NewReader(data))
		require.NoError(t, err)
		return d
	}
	manifest := ocispec.Manifest{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageManifest,
		Config: blob("application/vnd.cncf.helm.config.v1+json", []byte("{}")),
		Layers: []ocispec.Descriptor{blob("application/vnd.cncf.helm.chart.content.v1.tar+gzip", packed.Bytes()), blob("application/vnd.cncf.helm.chart.provenance.v1.prov", []byte("signed"))}}
	raw, err := json.Marshal(manifest)
	require.NoError(t, err)
	_, err = r.backend.PushManifest(context.Background(), Repository, tag, raw, manifest.MediaType)
	require.NoError(t, err)
	return string(digest.FromBytes(raw))
}
