// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/pergola-dev/pergola/api/crds"
	resourcesv1alpha1 "github.com/pergola-dev/pergola/api/resources/v1alpha1"
	"github.com/pergola-dev/pergola/hack/apiserver"
	"github.com/pergola-dev/pergola/hack/childprocess"
)

// suite is shared by the tests of this package; each test has its own namespaces.
var suite struct {
	*apiServer
	count atomic.Int64
	seed  uint64
}

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(runAll(m))
}

func runAll(m *testing.M) int {
	suite.seed = 1
	if text := os.Getenv("PERGOLA_FAULT_SEED"); text != "" {
		seed, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			fmt.Fprintln(os.Stderr, "PERGOLA_FAULT_SEED:", err)
			return 1
		}
		suite.seed = seed
	}
	fmt.Printf("PERGOLA_FAULT_SEED=%d\n", suite.seed)
	if !apiserver.IsAvailable() {
		return m.Run()
	}
	s, err := startServer()
	if err != nil {
		fmt.Fprintln(os.Stderr, "starting the API server:", err)
		return 1
	}
	suite.apiServer = s
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		runJanitor(ctx, s.config)
	}()
	code := m.Run()
	cancel()
	<-ended
	if err := s.stop(); err != nil && !strings.Contains(err.Error(), stopTimeoutMessage) {
		fmt.Fprintln(os.Stderr, "stopping the API server:", err)
	}
	return code
}

// newRand returns random numbers that depend on the seed and the name of the test.
func newRand(t testing.TB) *rand.Rand {
	name := uint64(0)
	for _, b := range []byte(t.Name()) {
		name = name*31 + uint64(b)
	}
	t.Logf("repeat with PERGOLA_FAULT_SEED=%d", suite.seed)
	return rand.New(rand.NewPCG(suite.seed, name))
}

// apiServer is a restartable API server with its etcd.
type apiServer struct {
	env    *envtest.Environment
	config *rest.Config
	dir    string
}

func startServer() (*apiServer, error) {
	dir, err := os.MkdirTemp("", "faults")
	if err != nil {
		return nil, err
	}
	s := &apiServer{dir: dir, env: &envtest.Environment{CRDs: crds.ByGroup(resourcesv1alpha1.SchemeGroupVersion.Group)}}
	api := s.env.ControlPlane.GetAPIServer()
	api.CertDir = dir // its default one would be created again at a restart
	api.StopTimeout = 3 * time.Second
	if s.config, err = apiserver.StartEnvironment(s.env); err != nil {
		_ = os.RemoveAll(dir)
		return nil, err
	}
	s.config.QPS = -1
	s.config.WarningHandler = rest.NoWarnings{} // lists include deprecated kinds
	return s, nil
}

// createDefinitions creates missing definitions, and waits until they are served.
func (s *apiServer) createDefinitions() error {
	_, err := envtest.InstallCRDs(s.config, envtest.CRDInstallOptions{CRDs: crds.ByGroup(resourcesv1alpha1.SchemeGroupVersion.Group)})
	return err
}

func (s *apiServer) stop() error {
	defer func() { _ = os.RemoveAll(s.dir) }()
	return s.env.Stop()
}

// stopTimeoutMessage is envtest's error about a process that did not stop in time.
const stopTimeoutMessage = "timeout waiting for process"

// restart stops the API server, forcibly if that takes long, and starts it again.
func (s *apiServer) restart(t testing.TB) {
	t.Helper()
	api := s.env.ControlPlane.GetAPIServer()
	if err := api.Stop(); err != nil {
		require.ErrorContains(t, err, stopTimeoutMessage)
	}
	host, err := url.Parse(s.config.Host)
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		listener, err := net.Listen("tcp", host.Host)
		return err == nil && listener.Close() == nil
	}, stateTimeout, 20*time.Millisecond, "the port is free")
	childprocess.RunInLastingThread(api.Start, &err)
	require.NoError(t, err)
}

// compactHistory makes etcd forget its history.
func (s *apiServer) compactHistory(t testing.TB) {
	t.Helper()
	call := func(path string, in, out any) {
		body, err := json.Marshal(in)
		require.NoError(t, err)
		answer, err := http.Post(s.env.ControlPlane.Etcd.URL.String()+path, "application/json", bytes.NewReader(body))
		require.NoError(t, err)
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, answer.StatusCode, "%s", text)
		require.NoError(t, json.Unmarshal(text, out))
	}
	var read struct{ Header struct{ Revision string } }
	call("/v3/kv/range", map[string]any{"key": "YQ=="}, &read)
	call("/v3/kv/compaction", map[string]any{"revision": read.Header.Revision, "physical": true}, &struct{}{})
}

// stateTimeout is the timeout for any state.
const stateTimeout = 60 * time.Second
