// SPDX-License-Identifier: Apache-2.0

package stages

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/pem"
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

// apiServer answers and counts the keeper's requests. Tests of the command use a real API server;
// this one controls the order of events.
type apiServer struct {
	served   map[string]string // OpenAPI path -> hash
	requests int
}

func (s *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.requests++
	switch {
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

// recordingPlayer records its calls.
type recordingPlayer struct{ events []string }

func (p *recordingPlayer) Play(_ context.Context, all []Stage) error {
	event := "play"
	for _, stage := range all {
		event += " " + stage.Name
	}
	p.events = append(p.events, event)
	return nil
}

func (p *recordingPlayer) Check(context.Context) error {
	p.events = append(p.events, "check")
	return nil
}

func (p *recordingPlayer) Stop(context.Context) error {
	p.events = append(p.events, "stop")
	return nil
}

func newTestClient(t *testing.T, handler http.Handler) *restclient.Client {
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

func TestStageSyncer(t *testing.T) {
	server, player := &apiServer{served: map[string]string{}}, &recordingPlayer{}
	var log bytes.Buffer
	keeper := StageSyncer{Client: newTestClient(t, server), Player: player, Log: &log, Interval: time.Millisecond, Stages: []Stage{
		{Name: "thing", GroupVersion: "example.com/v1", Kind: "Thing"},
		{Name: "other", GroupVersion: "example.com/v1", Kind: "Other"},
	}}
	expect := func(why string, events ...string) {
		t.Helper()
		player.events = nil
		require.NoError(t, keeper.Sync(t.Context()))
		assert.Equal(t, events, player.events, why)
	}
	expect("what an earlier keeper has left playing ends", "play")
	server.served["apis/example.com/v1"] = "one"
	expect("a kind without OpenAPI has to wait: kwok would end", "play thing")
	before := server.requests
	expect("nothing has changed", "check")
	assert.Equal(t, before+1, server.requests, "that costs one request")
	delete(server.served, "apis/example.com/v1")
	expect("the CRD is gone", "play")
	server.served["apis/example.com/v1"] = "two"
	expect("the CRD is back", "play thing")

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	player.events = nil
	require.NoError(t, keeper.Run(ctx))
	assert.Equal(t, []string{"stop"}, player.events)
}

func TestKwokRestart(t *testing.T) {
	folder := t.TempDir()
	kwok := &Kwok{
		Binary: "/bin/echo", Config: filepath.Join(folder, "stages.yaml"),
		Record: filepath.Join(folder, "run", "kwok.pid"), Log: filepath.Join(folder, "kwok.log"),
	}
	stage := Stage{Name: "thing", Object: map[string]any{"kind": "Stage"}}
	require.NoError(t, kwok.Play(t.Context(), nil))
	assert.NoFileExists(t, kwok.Record, "without stages there is nothing to run")
	require.NoError(t, kwok.Play(t.Context(), []Stage{stage}))
	require.Eventually(t, func() bool {
		err := kwok.Check(t.Context())
		return err != nil && strings.Contains(err.Error(), "kwok has ended: --kubeconfig=")
	}, 5*time.Second, time.Millisecond)
	assert.Equal(t, 1, kwok.failures)
	require.Eventually(t, func() bool { return kwok.Check(t.Context()) != nil }, 5*time.Second, time.Millisecond)
	assert.Equal(t, 1, kwok.failures, "not again at once")
	require.NoError(t, kwok.Stop(t.Context()))
	assert.NoFileExists(t, kwok.Record)
}
