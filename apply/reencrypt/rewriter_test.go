// SPDX-License-Identifier: Apache-2.0

package reencrypt

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/pergola-dev/pergola/hack/apiserver"
)

// encryptingServer is an API server that encrypts Secrets, and reloads its configuration while it
// runs.
type encryptingServer struct {
	*testing.T
	file   string
	etcd   string
	config *rest.Config
	client kubernetes.Interface
}

func newEncryptingServer(t *testing.T) *encryptingServer {
	t.Helper()
	apiserver.SkipIfUnavailable(t)
	e := &encryptingServer{T: t, file: filepath.Join(t.TempDir(), "encryption.yaml")}
	e.writeKeys("first")
	env := &envtest.Environment{}
	env.ControlPlane.GetAPIServer().Configure().Set("encryption-provider-config", e.file).Set("encryption-provider-config-automatic-reload", "true")
	var err error
	e.config, err = apiserver.StartEnvironment(env)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, env.Stop()) })
	e.etcd = env.ControlPlane.Etcd.URL.String()
	e.client, err = kubernetes.NewForConfig(e.config)
	require.NoError(t, err)
	return e
}

// writeKeys writes a configuration: the first key writes, all read.
func (e *encryptingServer) writeKeys(names ...string) {
	e.Helper()
	var list []any
	for _, name := range names {
		list = append(list, map[string]any{"name": name, "secret": base64.StdEncoding.EncodeToString([]byte((name + strings.Repeat("x", 32))[:32]))})
	}
	text, err := json.Marshal(map[string]any{
		"apiVersion": "apiserver.config.k8s.io/v1", "kind": "EncryptionConfiguration",
		"resources": []any{map[string]any{"resources": []string{"secrets"}, "providers": []any{map[string]any{"aescbc": map[string]any{"keys": list}}, map[string]any{"identity": map[string]any{}}}}},
	})
	require.NoError(e, err)
	next := e.file + ".next"
	require.NoError(e, os.WriteFile(next, text, 0o600))
	require.NoError(e, os.Rename(next, e.file))
}

func (e *encryptingServer) create(name string) {
	e.Helper()
	_, err := e.client.CoreV1().Secrets("default").Create(e.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}, StringData: map[string]string{"a": name}}, metav1.CreateOptions{FieldManager: "somebody"})
	require.NoError(e, err)
}

// storedKey returns the key of a Secret in etcd, and the revision of its last write.
func (e *encryptingServer) storedKey(name string) (key, revision string) {
	e.Helper()
	body, err := json.Marshal(map[string]string{"key": base64.StdEncoding.EncodeToString([]byte("/registry/secrets/default/" + name))})
	require.NoError(e, err)
	response, err := http.Post(e.etcd+"/v3/kv/range", "application/json", bytes.NewReader(body))
	require.NoError(e, err)
	defer response.Body.Close()
	var found struct {
		KVs []struct {
			Value    []byte `json:"value"`
			Revision string `json:"mod_revision"`
		} `json:"kvs"`
	}
	require.NoError(e, json.NewDecoder(response.Body).Decode(&found))
	require.Len(e, found.KVs, 1)
	parts := strings.SplitN(string(found.KVs[0].Value), ":", 6)
	require.Greater(e, len(parts), 5)
	return parts[4], found.KVs[0].Revision
}

// TestRewrite checks that all objects in etcd are rewritten with the current key, and only once.
func TestRewrite(t *testing.T) {
	e := newEncryptingServer(t)
	names := []string{"a", "b", "c", "d", "e"}
	for _, name := range names {
		e.create(name)
		key, _ := e.storedKey(name)
		require.Equal(t, "first", key)
	}
	e.writeKeys("second", "first")
	probes := 0
	require.Eventually(t, func() bool {
		probes++
		name := fmt.Sprintf("probe-%d", probes)
		e.create(name)
		key, _ := e.storedKey(name)
		return key == "second"
	}, 3*time.Minute, 500*time.Millisecond, "the API server takes up its new configuration")

	served, err := discovery.NewDiscoveryClientForConfig(e.config)
	require.NoError(t, err)
	groups, err := restmapper.GetAPIGroupResources(served)
	require.NoError(t, err)
	client, err := metadata.NewForConfig(e.config)
	require.NoError(t, err)
	var told []int
	w := Rewriter{Client: client, Mapper: restmapper.NewDiscoveryRESTMapper(groups), PageSize: 2, OnProgress: func(n int) { told = append(told, n) }}
	written, err := w.Rewrite(t.Context(), []string{"nowhere.example.org", "secrets."})
	require.NoError(t, err)
	assert.Equal(t, len(names)+probes, written)
	assert.NotEmpty(t, told)
	revisions := map[string]string{}
	for _, name := range names {
		key, revision := e.storedKey(name)
		assert.Equal(t, "second", key, name)
		revisions[name] = revision
		secret, err := e.client.CoreV1().Secrets("default").Get(t.Context(), name, metav1.GetOptions{})
		require.NoError(t, err)
		assert.Equal(t, name, string(secret.Data["a"]))
		require.Len(t, secret.ManagedFields, 1, "nobody owns more than before")
		assert.Equal(t, "somebody", secret.ManagedFields[0].Manager)
	}
	_, err = w.Rewrite(t.Context(), []string{"secrets"})
	require.NoError(t, err)
	for _, name := range names {
		_, revision := e.storedKey(name)
		assert.Equal(t, revisions[name], revision, "%s was written a second time", name)
	}
}
