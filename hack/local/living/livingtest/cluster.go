// SPDX-License-Identifier: Apache-2.0

package livingtest

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/pergola-dev/pergola/hack/local/binaries"
	"github.com/pergola-dev/pergola/hack/local/cluster"
	"github.com/pergola-dev/pergola/hack/local/statedir"
)

// Module returns the folder of the test's module. `go test` runs a test in the folder of its
// package; the names of source files contain no folders with -trimpath.
func Module() string {
	dir, err := os.Getwd()
	if err != nil {
		panic("cannot find the folder of the test: " + err.Error())
	}
	for ; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
	}
	panic("no go.mod above the folder of the test")
}

// Start starts a cluster for a test, with the API server and the given parts, and returns its
// administrator's config. It ends with the test.
func Start(t *testing.T, parts ...string) *rest.Config {
	t.Helper()
	dir, err := statedir.Open(filepath.Join(t.TempDir(), "state"))
	require.NoError(t, err)
	m := &cluster.Manager{Dir: dir, Out: t.Output(), Now: time.Now, Source: binaries.Source{
		Assets: os.Getenv("KUBEBUILDER_ASSETS"), Module: Module(), Bin: filepath.Join(Module(), "bin"),
		Progress: binaries.Progress{Out: t.Output()},
	}}
	t.Cleanup(func() { assert.NoError(t, m.Down(context.Background())) })
	require.NoError(t, m.Up(t.Context(), cluster.Options{
		Clusters: []string{"one"}, Parts: append([]string{cluster.PartAPIServer}, parts...), Timeout: 3 * time.Minute,
	}))
	config, err := clientcmd.BuildConfigFromFlags("", dir.Kubeconfig("one"))
	require.NoError(t, err)
	config.QPS = -1
	return config
}
