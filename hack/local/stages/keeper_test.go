package stages

import (
	"bytes"
	"encoding/json"
	"encoding/pem"
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

	"github.com/pergola-dev/pergola/hack/local/pki"
	"github.com/pergola-dev/pergola/hack/local/restclient"
)

// apiServer answers what the keeper asks and counts it. The real API server is in the tests of the
// command; here the order of events is in our hands.
type apiServer struct {
	served   map[string]string // OpenAPI path -> hash
	stages   map[string]bool
	requests int
}

func (s *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.requests++
	name := strings.TrimPrefix(r.URL.Path, stagesPath+"/")
	switch {
	case r.Method == http.MethodPatch:
		s.stages[name] = true
		_, _ = io.WriteString(w, "{}")
	case r.Method == http.MethodDelete:
		delete(s.stages, name)
		_, _ = io.WriteString(w, "{}")
	case r.URL.Path == stagesPath:
		var items []any
		for name := range s.stages {
			items = append(items, map[string]any{"metadata": map[string]any{"name": name}})
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"items": items})
	case r.URL.Path == "/openapi/v3":
		paths := map[string]any{}
		for path, hash := range s.served {
			paths[path] = map[string]any{"serverRelativeURL": "/openapi/v3/" + path + "?hash=" + hash}
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"paths": paths})
	case strings.HasPrefix(r.URL.Path, "/openapi/v3/"):
		_ = json.NewEncoder(w).Encode(map[string]any{"paths": map[string]any{r.URL.Path + "/namespaces/{namespace}/things/{name}": nil}})
	default:
		_ = json.NewEncoder(w).Encode(map[string]any{"resources": []any{map[string]any{"name": "things", "kind": "Thing"}, map[string]any{"name": "others", "kind": "Other"}}})
	}
}

func connect(t *testing.T, handler http.Handler) *restclient.Client {
	t.Helper()
	server := httptest.NewTLSServer(handler)
	t.Cleanup(server.Close)
	folder := &pki.Folder{Path: t.TempDir(), Now: time.Now()}
	authority, err := folder.Authority("client-ca")
	require.NoError(t, err)
	require.NoError(t, folder.Issue(authority, pki.Leaf{Name: "client", User: "client"}))
	ca := filepath.Join(folder.Path, "server-ca.crt")
	block := &pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}
	require.NoError(t, os.WriteFile(ca, pem.EncodeToMemory(block), 0o600))
	client, err := restclient.New(server.URL, restclient.Files{CA: ca, Cert: folder.Cert("client"), Key: folder.Key("client")})
	require.NoError(t, err)
	return client
}

func TestKeeper(t *testing.T) {
	server := &apiServer{served: map[string]string{}, stages: map[string]bool{"of-an-older-version": true}}
	var log bytes.Buffer
	keeper := Keeper{Client: connect(t, server), Log: &log, Stages: []Stage{
		{Name: "thing", GroupVersion: "example.com/v1", Kind: "Thing", Object: map[string]any{}},
		{Name: "other", GroupVersion: "example.com/v1", Kind: "Other", Object: map[string]any{}},
	}}
	sync := func() {
		t.Helper()
		require.NoError(t, keeper.Sync(t.Context()))
	}
	sync()
	assert.Empty(t, server.stages, "nothing is served yet, and what is not ours any more is gone")

	server.served["apis/example.com/v1"] = "one"
	sync()
	assert.Equal(t, map[string]bool{"thing": true}, server.stages, "a kind without OpenAPI has to wait: kwok would give up on it")

	before := server.requests
	sync()
	assert.Equal(t, before+1, server.requests, "one request when nothing has changed")

	delete(server.served, "apis/example.com/v1")
	sync()
	assert.Empty(t, server.stages)
	server.served["apis/example.com/v1"] = "one"
	sync()
	assert.Equal(t, map[string]bool{"thing": true}, server.stages, "the CRD may come back")
	assert.Contains(t, log.String(), "example.com/v1 Thing is served: added stage thing")
}
