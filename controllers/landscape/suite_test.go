package landscape

import (
	"context"
	"fmt"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/pergola-dev/pergola/apply"
)

// server is the API server that the tests of leases share.
var server struct {
	config *rest.Config
	count  atomic.Int64
}

func TestMain(m *testing.M) {
	if os.Getenv("KUBEBUILDER_ASSETS") == "" {
		os.Exit(m.Run())
	}
	env := &envtest.Environment{}
	config, err := env.Start()
	if err != nil {
		fmt.Fprintln(os.Stderr, "starting the API server:", err)
		os.Exit(1)
	}
	server.config = config
	code := m.Run()
	if err := env.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, "stopping the API server:", err)
	}
	os.Exit(code)
}

// needsServer leaves a test out where there is no API server.
func needsServer(t *testing.T) {
	t.Helper()
	if server.config == nil {
		t.Skip("KUBEBUILDER_ASSETS is not set: needs etcd and kube-apiserver (make test sets it)")
	}
}

// testCluster is a connection as a process has it; change may spoil it.
func testCluster(t *testing.T, change ...func(*rest.Config)) *apply.Cluster {
	t.Helper()
	needsServer(t)
	config := rest.CopyConfig(server.config)
	for _, c := range change {
		c(config)
	}
	c, err := apply.NewCluster("test", config, apply.ClusterOptions{Cooldown: time.Millisecond})
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
