// SPDX-License-Identifier: Apache-2.0

package landscape

import (
	"context"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/pergola-dev/pergola/api/crds"
	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/controllers/conventions"
	"github.com/pergola-dev/pergola/hack/apiserver"
)

// server is the API server that the tests of the package share.
var server struct {
	config *rest.Config
	count  atomic.Int64
}

func TestMain(m *testing.M) {
	os.Exit(apiserver.Main(m, func(config *rest.Config) { server.config = config }, crds.ByGroup("core.gardener.cloud")...))
}

// needsServer skips a test if no API server is available.
func needsServer(t *testing.T) {
	t.Helper()
	apiserver.SkipIfUnavailable(t)
}

// testCluster returns a connection; change may break it.
func testCluster(t *testing.T, change ...func(*rest.Config)) *apply.Cluster {
	t.Helper()
	needsServer(t)
	config := rest.CopyConfig(server.config)
	for _, c := range change {
		c(config)
	}
	c, err := conventions.NewCluster("test", config, apply.ClusterOptions{Cooldown: time.Millisecond})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

func testClient(t *testing.T) kubernetes.Interface {
	t.Helper()
	needsServer(t)
	client, err := kubernetes.NewForConfig(server.config)
	require.NoError(t, err)
	return client
}

func testContext(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	require.Eventually(t, ok, 20*time.Second, 5*time.Millisecond, what)
}
