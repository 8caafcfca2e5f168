// SPDX-License-Identifier: Apache-2.0

package source

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"cuelabs.dev/go/oci/ociregistry"
	"cuelabs.dev/go/oci/ociregistry/ocimem"
	"cuelabs.dev/go/oci/ociregistry/ociserver"
	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
)

// registryServer is a registry over HTTPS that counts requests.
type registryServer struct {
	*httptest.Server
	backend   *ocimem.Registry
	mutex     sync.Mutex
	requests  []string
	intercept func(http.ResponseWriter, *http.Request) bool
}

func newRegistry(t *testing.T) *registryServer {
	t.Helper()
	s := &registryServer{backend: ocimem.New()}
	handler := ociserver.New(s.backend, nil)
	s.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mutex.Lock()
		s.requests = append(s.requests, r.Method+" "+r.URL.Path)
		intercept := s.intercept
		s.mutex.Unlock()
		if intercept == nil || !intercept(w, r) {
			handler.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *registryServer) reset(intercept func(http.ResponseWriter, *http.Request) bool) []string {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	requests := s.requests
	s.requests, s.intercept = nil, intercept
	return requests
}

func (s *registryServer) url() string {
	return "oci://" + strings.TrimPrefix(s.URL, "https://") + "/landscapes/prod"
}

func (s *registryServer) credentials() Credentials {
	return Credentials{CA: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})}
}

type archivedFile struct {
	name, content string
	kind          byte
}

func buildArchive(t *testing.T, files ...archivedFile) []byte {
	t.Helper()
	var out bytes.Buffer
	zipped := gzip.NewWriter(&out)
	writer := tar.NewWriter(zipped)
	for _, file := range files {
		header := &tar.Header{Name: file.name, Mode: 0o644, Size: int64(len(file.content)), Typeflag: file.kind}
		switch file.kind {
		case 0:
			header.Typeflag = tar.TypeReg
		case tar.TypeSymlink, tar.TypeLink:
			header.Linkname, header.Size = file.content, 0
		}
		require.NoError(t, writer.WriteHeader(header))
		if header.Size > 0 {
			_, err := writer.Write([]byte(file.content))
			require.NoError(t, err)
		}
	}
	require.NoError(t, writer.Close())
	require.NoError(t, zipped.Close())
	return out.Bytes()
}

func (s *registryServer) push(t *testing.T, tag, media string, content []byte) string {
	t.Helper()
	const repo = "landscapes/prod"
	put := func(data []byte, media string) ocispec.Descriptor {
		d, err := s.backend.PushBlob(t.Context(), repo, ociregistry.Descriptor{MediaType: media, Digest: digest.FromBytes(data), Size: int64(len(data))}, bytes.NewReader(data))
		require.NoError(t, err)
		d.MediaType = media
		return d
	}
	manifest, err := json.Marshal(ocispec.Manifest{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageManifest,
		Config: put([]byte("{}"), "application/vnd.cncf.flux.config.v1+json"), Layers: []ocispec.Descriptor{put(content, media)},
		Annotations: map[string]string{ocispec.AnnotationCreated: "2026-01-02T03:04:05Z", ocispec.AnnotationSource: "https://git.example.com/x", ocispec.AnnotationRevision: "main@sha1:abc"}})
	require.NoError(t, err)
	pushed, err := s.backend.PushManifest(t.Context(), repo, tag, manifest, ocispec.MediaTypeImageManifest)
	require.NoError(t, err)
	return string(pushed.Digest)
}

func TestArtifacts(t *testing.T) {
	registry := newRegistry(t)
	one := registry.push(t, "latest", fluxContent, buildArchive(t, archivedFile{name: "landscape.yaml", content: "one"}, archivedFile{name: "seeds/", kind: tar.TypeDir}, archivedFile{name: "./seeds/a.yaml", content: "a"}, archivedFile{name: "deep/er/b.yaml", content: "b"}))
	dir := filepath.Join(t.TempDir(), "cache")
	options := Options{URL: registry.url(), Dir: dir, Credentials: registry.credentials()}
	r := newTestRemote(t, options)
	s := resolveAndFetch(t, r)
	assert.Equal(t, "latest@"+one, s.Revision())
	assert.Equal(t, "one", readSnapshotFile(t, s, "landscape.yaml"))
	assert.Equal(t, "https://git.example.com/x main@sha1:abc", s.Origin)
	assert.Equal(t, 2026, s.Time.Year())
	require.NoError(t, fstest.TestFS(s.FS, "landscape.yaml", "seeds/a.yaml", "deep/er/b.yaml"))
	registry.reset(nil)

	assert.Equal(t, s.Head, resolveAndFetch(t, r).Head)
	assert.Equal(t, []string{"HEAD /v2/landscapes/prod/manifests/latest"}, registry.reset(nil), "nothing new is one request")

	// An artifact by `oras push`; its tag moves, as tags of artifacts do.
	two := registry.push(t, "latest", ocispec.MediaTypeImageLayerGzip, buildArchive(t, archivedFile{name: "landscape.yaml", content: "two"}))
	assert.Equal(t, "two", readSnapshotFile(t, resolveAndFetch(t, r), "landscape.yaml"))
	require.NoError(t, r.Close())

	registry.reset(nil)
	r = newTestRemote(t, options)
	former, err := r.At(t.Context(), one)
	require.NoError(t, err)
	assert.Equal(t, "one", readSnapshotFile(t, former, "landscape.yaml"))
	assert.Empty(t, registry.reset(nil), "a former one comes from the cache")
	assert.Equal(t, "one", readSnapshotFile(t, s, "landscape.yaml"), "a snapshot lives on")
	require.NoError(t, r.Close())

	// Files that were changed on disk are pulled again.
	files, err := filepath.Glob(filepath.Join(dir, artifactsFolder, "*"))
	require.NoError(t, err)
	require.Len(t, files, 4)
	for _, file := range files {
		require.NoError(t, os.WriteFile(file, []byte("changed"), 0o600))
	}
	r = newTestRemote(t, options)
	former, err = r.At(t.Context(), one)
	require.NoError(t, err)
	assert.Equal(t, "one", readSnapshotFile(t, former, "landscape.yaml"))

	registry.push(t, "v1.2.0", fluxContent, buildArchive(t, archivedFile{name: "landscape.yaml", content: "1.2"}))
	registry.push(t, "1.3.0", fluxContent, buildArchive(t, archivedFile{name: "landscape.yaml", content: "1.3"}))
	registry.push(t, "2.0.0", fluxContent, buildArchive(t, archivedFile{name: "landscape.yaml", content: "2"}))
	for _, c := range []struct {
		ref  landscapev1alpha1.Reference
		want string
	}{{landscapev1alpha1.Reference{SemVer: "<2"}, "1.3"}, {landscapev1alpha1.Reference{Tag: "v1.2.0"}, "1.2"}, {landscapev1alpha1.Reference{Digest: two, Tag: "v1.2.0"}, "two"}} {
		options := options
		options.Ref, options.Dir = c.ref, ""
		r, err := NewRemote(options)
		require.NoError(t, err)
		assert.Equal(t, c.want, readSnapshotFile(t, resolveAndFetch(t, r), "landscape.yaml"))
		require.NoError(t, r.Close())
	}
	options.Ref = landscapev1alpha1.Reference{Tag: "gone"}
	_, err = newTestRemote(t, options).Resolve(t.Context())
	requireReason(t, ReasonReferenceNotFound, err)
	// The deletion of an applied version does not cause a rollback.
	options.Ref = landscapev1alpha1.Reference{SemVer: "<2"}
	before := options
	before.AppliedRevision = "1.4.0@" + two
	_, err = newTestRemote(t, before).Resolve(t.Context())
	requireReason(t, ReasonReferenceNotFound, err)
	require.ErrorContains(t, err, "tag 1.4.0 no longer exists, and 1.3.0, the highest in the range <2, is lower")
	options.Ref = landscapev1alpha1.Reference{SemVer: ">=9"}
	_, err = newTestRemote(t, options).Resolve(t.Context())
	requireReason(t, ReasonReferenceNotFound, err)
}

func TestArchivesThatAreRefused(t *testing.T) {
	registry := newRegistry(t)
	limits := Limits{Transferred: 1 << 20, Unpacked: 64 << 10, File: 8 << 10, Files: 20}
	var many []archivedFile
	for i := range 30 {
		many = append(many, archivedFile{name: fmt.Sprint(i)})
	}
	var bomb []archivedFile
	for i := range 15 {
		bomb = append(bomb, archivedFile{name: fmt.Sprint(i), content: strings.Repeat("0", 8<<10)})
	}
	whole := buildArchive(t, archivedFile{name: "a", content: strings.Repeat("a", 4000)})
	for name, c := range map[string]struct {
		media  string
		data   []byte
		reason Reason
	}{
		"above":           {data: buildArchive(t, archivedFile{name: "../a", content: "x"}), reason: ReasonInvalid},
		"above later":     {data: buildArchive(t, archivedFile{name: "a/../../b", content: "x"}), reason: ReasonInvalid},
		"from the root":   {data: buildArchive(t, archivedFile{name: "/etc/passwd", content: "x"}), reason: ReasonInvalid},
		"backslash":       {data: buildArchive(t, archivedFile{name: `..\a`, content: "x"}), reason: ReasonInvalid},
		"link":            {data: buildArchive(t, archivedFile{name: "a", content: "/etc/passwd", kind: tar.TypeSymlink}), reason: ReasonInvalid},
		"hard link":       {data: buildArchive(t, archivedFile{name: "a", content: "b", kind: tar.TypeLink}), reason: ReasonInvalid},
		"device":          {data: buildArchive(t, archivedFile{name: "a", kind: tar.TypeChar}), reason: ReasonInvalid},
		"twice":           {data: buildArchive(t, archivedFile{name: "a", content: "1"}, archivedFile{name: "./a", content: "2"}), reason: ReasonInvalid},
		"file and folder": {data: buildArchive(t, archivedFile{name: "a", content: "1"}, archivedFile{name: "a/b", content: "2"}), reason: ReasonInvalid},
		"folder and file": {data: buildArchive(t, archivedFile{name: "a/b", content: "1"}, archivedFile{name: "a", content: "2"}), reason: ReasonInvalid},
		"large file":      {data: buildArchive(t, archivedFile{name: "a", content: strings.Repeat("0", 9<<10)}), reason: ReasonTooLarge},
		"unpacked":        {data: buildArchive(t, bomb...), reason: ReasonTooLarge},
		"many files":      {data: buildArchive(t, many...), reason: ReasonTooLarge},
		"deep":            {data: buildArchive(t, archivedFile{name: strings.Repeat("a/", 80) + "b", content: "x"}), reason: ReasonInvalid},
		"transferred":     {data: make([]byte, 2<<20), reason: ReasonTooLarge},
		"not compressed":  {data: []byte("hello"), reason: ReasonInvalid},
		"cut":             {data: whole[:len(whole)/2], reason: ReasonInvalid},
		"another media":   {media: "text/plain", data: []byte("hello"), reason: ReasonInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			media := c.media
			if media == "" {
				media = fluxContent
			}
			registry.push(t, "bad", media, c.data)
			dir := filepath.Join(t.TempDir(), "cache")
			r := newTestRemote(t, Options{URL: registry.url(), Dir: dir, Credentials: registry.credentials(), Ref: landscapev1alpha1.Reference{Tag: "bad"}, Limits: limits})
			head, err := r.Resolve(t.Context())
			require.NoError(t, err)
			_, err = r.Fetch(t.Context(), head)
			requireReason(t, c.reason, err)
			assert.Empty(t, incompleteFiles(t, dir))
		})
	}
	registry.push(t, "lfs", fluxContent, buildArchive(t, archivedFile{name: "a.yaml", content: lfsPointerPrefix + "v1\n"}))
	s := resolveAndFetch(t, newTestRemote(t, Options{URL: registry.url(), Credentials: registry.credentials(), Ref: landscapev1alpha1.Reference{Tag: "lfs"}}))
	_, err := fs.ReadFile(s.FS, "a.yaml")
	requireReason(t, ReasonLFSUnsupported, err)
}

func TestRegistryWithWrongContent(t *testing.T) {
	registry := newRegistry(t)
	good := buildArchive(t, archivedFile{name: "a", content: "good"})
	bad := buildArchive(t, archivedFile{name: "a", content: "evil"})
	registry.push(t, "latest", fluxContent, good)
	for _, part := range []string{"/blobs/", "/manifests/sha256:"} {
		r := newTestRemote(t, Options{URL: registry.url(), Credentials: registry.credentials()})
		head, err := r.Resolve(t.Context())
		require.NoError(t, err)
		registry.reset(func(w http.ResponseWriter, req *http.Request) bool {
			if !strings.Contains(req.URL.Path, part) {
				return false
			}
			w.Header().Set("Content-Type", ocispec.MediaTypeImageManifest)
			w.Header().Set("Docker-Content-Digest", req.URL.Path[strings.LastIndex(req.URL.Path, "/")+1:])
			_, _ = w.Write(bad)
			return true
		})
		_, err = r.Fetch(t.Context(), head)
		require.Error(t, err)
		registry.reset(nil)
		s, err := r.Fetch(t.Context(), head)
		require.NoError(t, err, "afterwards it is good again")
		assert.Equal(t, "good", readSnapshotFile(t, s, "a"))
	}
}

func TestLoginsAtRegistries(t *testing.T) {
	registry := newRegistry(t)
	registry.push(t, "latest", fluxContent, buildArchive(t, archivedFile{name: "a", content: "x"}))
	host := strings.TrimPrefix(registry.URL, "https://")
	basic := "Basic " + base64.StdEncoding.EncodeToString([]byte("bot:hunter2"))
	withBasic := func(w http.ResponseWriter, r *http.Request) bool {
		if r.Header.Get("Authorization") == basic {
			return false
		}
		w.Header().Set("WWW-Authenticate", `Basic realm="x"`)
		w.WriteHeader(http.StatusUnauthorized)
		return true
	}
	withToken := func(w http.ResponseWriter, r *http.Request) bool {
		switch {
		case r.URL.Path == "/token" && r.Header.Get("Authorization") == basic && r.Method == http.MethodGet:
			_, _ = w.Write([]byte(`{"token":"letmein","expires_in":300}`))
		case r.URL.Path == "/token" && r.Method == http.MethodPost:
			w.WriteHeader(http.StatusNotFound)
		case r.URL.Path == "/token":
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = w.Write([]byte(r.Header.Get("Authorization")))
		case r.Header.Get("Authorization") == "Bearer letmein":
			return false
		default:
			w.Header().Set("WWW-Authenticate", `Bearer realm="`+registry.URL+`/token",service="x",scope="repository:landscapes/prod:pull"`)
			w.WriteHeader(http.StatusUnauthorized)
		}
		return true
	}
	docker := []byte(fmt.Sprintf(`{"auths":{"%s":{"username":"bot","password":"hunter2"}}}`, host))
	for name, c := range map[string]struct {
		server func(http.ResponseWriter, *http.Request) bool
		data   map[string][]byte
		fails  bool
	}{
		"basic":             {server: withBasic, data: map[string][]byte{"username": []byte("bot"), "password": []byte("hunter2")}},
		"basic wrong":       {server: withBasic, data: map[string][]byte{"username": []byte("bot"), "password": []byte("hunter3")}, fails: true},
		"basic none":        {server: withBasic, fails: true},
		"basic of docker":   {server: withBasic, data: map[string][]byte{".dockerconfigjson": docker}},
		"token":             {server: withToken, data: map[string][]byte{"username": []byte("bot"), "password": []byte("hunter2")}},
		"token given":       {server: withToken, data: map[string][]byte{"bearerToken": []byte("letmein")}},
		"token given wrong": {server: withToken, data: map[string][]byte{"bearerToken": []byte("hunter2")}, fails: true},
		"token wrong":       {server: withToken, data: map[string][]byte{"username": []byte("bot"), "password": []byte("hunter3")}, fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			credentials := Credentials{}
			if c.data != nil {
				var err error
				credentials, err = CredentialsOf(registry.url(), c.data)
				require.NoError(t, err)
			}
			credentials.CA = registry.credentials().CA
			r := newTestRemote(t, Options{URL: registry.url(), Credentials: credentials})
			registry.reset(c.server)
			head, err := r.Resolve(t.Context())
			if c.fails {
				requireReason(t, ReasonAuthenticationFailed, err)
				assert.NotContains(t, err.Error(), "hunter")
				return
			}
			require.NoError(t, err)
			_, err = r.Fetch(t.Context(), head)
			require.NoError(t, err)
		})
	}
	_, err := newTestRemote(t, Options{URL: registry.url()}).Resolve(t.Context())
	requireReason(t, ReasonUnreachable, err)
	require.ErrorContains(t, err, "put the authority's certificate into ca.crt of the Secret of secretRef: ")
	_, err = newTestRemote(t, Options{URL: strings.Replace(registry.url(), "127.0.0.1", "localhost", 1), Credentials: registry.credentials()}).Resolve(t.Context())
	requireReason(t, ReasonUnreachable, err)
	require.ErrorContains(t, err, "does not name the host of the url: ")
	_, err = newTestRemote(t, Options{URL: registry.URL + "/x.git"}).Resolve(t.Context())
	requireReason(t, ReasonUnreachable, err)
	require.ErrorContains(t, err, "ca.crt")
}

// TestRegistryWithoutTLS: the error about a registry with plain HTTP names the setting, whether the
// registry answers or hangs up.
func TestRegistryWithoutTLS(t *testing.T) {
	plain := httptest.NewServer(newRegistry(t).Config.Handler)
	t.Cleanup(plain.Close)
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = silent.Close() })
	go func() {
		for {
			connection, err := silent.Accept()
			if err != nil {
				return
			}
			_, _ = connection.Read(make([]byte, 1<<16))
			_ = connection.Close()
		}
	}()
	for name, address := range map[string]string{"answers": plain.Listener.Addr().String(), "hangs up": silent.Addr().String()} {
		t.Run(name, func(t *testing.T) {
			_, err := newTestRemote(t, Options{URL: "oci://" + address + "/landscapes/prod"}).Resolve(t.Context())
			require.EqualError(t, err, "the registry at "+address+" does not speak TLS: set insecure: true in the source if plain HTTP is intended")
			assert.Equal(t, ReasonUnreachable, ReasonOf(err))
		})
	}
}
