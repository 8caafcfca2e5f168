package charts

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
	"time"

	"cuelabs.dev/go/oci/ociregistry"
	"cuelabs.dev/go/oci/ociregistry/ocimem"
	"cuelabs.dev/go/oci/ociregistry/ociserver"
	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	clocktesting "k8s.io/utils/clock/testing"

	gardencorev1 "github.com/pergola-dev/pergola/api/core/v1"
	"github.com/pergola-dev/pergola/render"
)

// registry is one over HTTPS that wants a login.
type registry struct {
	*httptest.Server
	backend  *ocimem.Registry
	requests atomic.Int64
	down     atomic.Bool
}

func newRegistry(t *testing.T) *registry {
	r := &registry{backend: ocimem.New()}
	handler := ociserver.New(r.backend, nil)
	r.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		r.requests.Add(1)
		if _, password, _ := q.BasicAuth(); password != "right" {
			w.Header().Set("WWW-Authenticate", `Basic realm="test"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		if r.down.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		handler.ServeHTTP(w, q)
	}))
	t.Cleanup(r.Close)
	return r
}

func (r *registry) host() string { return strings.TrimPrefix(r.URL, "https://") }

// push makes a chart as `helm push` does, and gives its digest.
func (r *registry) push(t *testing.T, tag string, files map[string]string) string {
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
		_, err := r.backend.PushBlob(context.Background(), "charts/watcher", ociregistry.Descriptor(d), bytes.NewReader(data))
		require.NoError(t, err)
		return d
	}
	manifest := ocispec.Manifest{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageManifest,
		Config: blob("application/vnd.cncf.helm.config.v1+json", []byte("{}")),
		Layers: []ocispec.Descriptor{blob("application/vnd.cncf.helm.chart.content.v1.tar+gzip", packed.Bytes()), blob("application/vnd.cncf.helm.chart.provenance.v1.prov", []byte("signed"))}}
	raw, err := json.Marshal(manifest)
	require.NoError(t, err)
	_, err = r.backend.PushManifest(context.Background(), "charts/watcher", tag, raw, manifest.MediaType)
	require.NoError(t, err)
	return string(digest.FromBytes(raw))
}

func (r *registry) secrets(password string) func(string) (map[string][]byte, error) {
	return func(name string) (map[string][]byte, error) {
		if name == "authority" {
			return map[string][]byte{"bundle.crt": pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: r.Certificate().Raw})}, nil
		}
		login := map[string]any{"auths": map[string]any{r.host(): map[string]any{"username": "robot", "password": password}}}
		raw, err := json.Marshal(login)
		return map[string][]byte{corev1.DockerConfigJsonKey: raw}, err
	}
}

func (r *registry) named(ref string) gardencorev1.OCIRepository {
	ref = r.host() + "/charts/watcher" + ref
	return gardencorev1.OCIRepository{Ref: &ref, PullSecretRef: &corev1.LocalObjectReference{Name: "login"}, CABundleSecretRef: &corev1.LocalObjectReference{Name: "authority"}}
}

func chartFiles(version string) map[string]string {
	return map[string]string{
		"watcher/Chart.yaml":          "apiVersion: v2\nname: watcher\nversion: " + version + "\n",
		"watcher/templates/some.yaml": "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: watcher}\n",
	}
}

func TestPull(t *testing.T) {
	r := newRegistry(t)
	first := r.push(t, "v1", chartFiles("1.0.0"))
	clock := clocktesting.NewFakePassiveClock(time.Now())
	p := &Puller{Dir: t.TempDir(), Clock: clock}
	pull := func(p *Puller, ref, password string) render.Chart {
		t.Helper()
		all := p.All(t.Context(), []gardencorev1.OCIRepository{r.named(ref)}, r.secrets(password))
		require.Len(t, all, 1)
		for _, c := range all {
			return c
		}
		return render.Chart{}
	}
	wrong := pull(p, ":v1", "wrong")
	assert.Contains(t, wrong.Problem, "chart "+r.host()+"/charts/watcher:v1 cannot be pulled")
	assert.Contains(t, wrong.Problem, "does not take the credentials")
	assert.NotContains(t, wrong.Problem, "wrong\"")
	assert.Equal(t, first, pull(p, ":v1", "right").Digest)
	assert.Equal(t, first, pull(p, "@"+first, "right").Digest)

	second := r.push(t, "v1", chartFiles("1.0.1"))
	asked := r.requests.Load()
	assert.Equal(t, first, pull(p, ":v1", "right").Digest, "the answer about the tag is believed for a while")
	assert.Equal(t, asked, r.requests.Load())
	clock.SetTime(clock.Now().Add(time.Hour))
	r.down.Store(true)
	assert.Equal(t, first, pull(p, ":v1", "right").Digest, "nothing changes while the registry does not answer")
	assert.Contains(t, pull(p, ":v2", "right").Problem, "status 503")
	r.down.Store(false)
	assert.Equal(t, second, pull(p, ":v1", "right").Digest)

	r.down.Store(true)
	again := &Puller{Dir: p.Dir, Clock: clock}
	assert.Equal(t, second, pull(again, "@"+second, "right").Digest, "what is named by its digest is in the cache")
	assert.Contains(t, pull(again, ":v1", "right").Problem, "status 503", "what a tag names is not")
}

func TestWhatIsNoChart(t *testing.T) {
	large := chartFiles("1.0.0")
	large["watcher/large"] = strings.Repeat("x", int(limits.File)+1)
	for name, test := range map[string]struct {
		files map[string]string
		want  string
	}{
		"no Chart.yaml": {map[string]string{"watcher/values.yaml": ""}, "no Helm chart"},
		"out of it":     {map[string]string{"../watcher/Chart.yaml": ""}, "cannot be pulled"},
		"a large file":  {large, "cannot be pulled"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRegistry(t)
			r.push(t, "v1", test.files)
			for _, c := range (&Puller{}).All(t.Context(), []gardencorev1.OCIRepository{r.named(":v1")}, r.secrets("right")) {
				assert.Contains(t, c.Problem, test.want)
				assert.Empty(t, c.Digest)
			}
		})
	}
}

func TestSecretsThatAreNotThere(t *testing.T) {
	r := newRegistry(t)
	all := (&Puller{}).All(t.Context(), []gardencorev1.OCIRepository{r.named(":v1")}, func(name string) (map[string][]byte, error) {
		return map[string][]byte{corev1.DockerConfigJsonKey: []byte(`{"auths":{}}`)}, nil
	})
	for _, c := range all {
		assert.Contains(t, c.Problem, "the Secret authority has no key bundle.crt")
	}
	require.Len(t, all, 1)
	assert.Zero(t, r.requests.Load())
}
