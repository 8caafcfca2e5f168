// SPDX-License-Identifier: Apache-2.0

package adoption

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/clock"

	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/components"
	"github.com/pergola-dev/pergola/controllers/landscape"
	"github.com/pergola-dev/pergola/hack/testclusters"
	"github.com/pergola-dev/pergola/landscapes"
	"github.com/pergola-dev/pergola/schemas"
)

// runTimeout is how long one run may take on a busy machine.
const runTimeout = 4 * time.Minute

// clusterSet are the clusters of a test.
type clusterSet struct {
	testclusters.Programs
	configs map[string]*rest.Config
}

// builtPrograms are built once, for the first test that needs them.
var builtPrograms struct {
	testclusters.Programs
	dir string
}

func TestMain(m *testing.M) {
	code := m.Run()
	if builtPrograms.dir != "" {
		if err := os.RemoveAll(builtPrograms.dir); err != nil {
			fmt.Fprintln(os.Stderr, "tests of the adoption:", err)
			code = 1
		}
	}
	os.Exit(code)
}

// startClusters starts clusters, which end with the test: the runtime cluster, and others without
// nodes. With fast they are only API servers.
func startClusters(t *testing.T, fast bool, names ...string) *clusterSet {
	t.Helper()
	root, err := testclusters.RepositoryRoot()
	require.NoError(t, err)
	if missing := testclusters.MissingRequirement(root, false); missing != "" {
		t.Skip(missing)
	}
	if builtPrograms.dir == "" {
		builtPrograms.dir, err = os.MkdirTemp("", "pergola-adoption-")
		require.NoError(t, err)
		builtPrograms.Programs, err = testclusters.Build(root, builtPrograms.dir, "")
		require.NoError(t, err)
	}
	w := &clusterSet{Programs: builtPrograms.Programs, configs: map[string]*rest.Config{}}
	w.State = filepath.Join(builtPrograms.dir, t.Name())
	t.Cleanup(func() {
		if err := w.Clean(); err != nil {
			t.Error(err)
		}
	})
	others := []string{"--clusters", strings.Join(names, ","), "--nodeless", strings.Join(names, ",")}
	if fast {
		others = append(others, "--fast")
	}
	_, err = w.Up(others...)
	require.NoError(t, err)
	state, err := w.Up("--clusters", landscape.Runtime)
	require.NoError(t, err)
	for _, name := range append([]string{landscape.Runtime}, names...) {
		config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(&clientcmd.ClientConfigLoadingRules{ExplicitPath: state.Kubeconfig},
			&clientcmd.ConfigOverrides{CurrentContext: "pergola-" + name}).ClientConfig()
		require.NoError(t, err)
		config.UserAgent, config.QPS, config.WarningHandler = "pergola", -1, rest.NoWarnings{}
		w.configs[name] = config
	}
	return w
}

// stage is a landscape with only a Garden, and clients for its clusters.
type stage struct {
	*testing.T
	world *clusterSet
	dir   string
	api   map[string]dynamic.Interface
}

// noWaitOverlay removes the half minute until an API server counts as available, which played ones
// do not need.
const noWaitOverlay = `
patches:
- target: {kind: Deployment}
  patch: |
    - {op: replace, path: /spec/minReadySeconds, value: 0}
`

func newStage(t *testing.T) *stage {
	t.Helper()
	env := startClusters(t, false, landscape.Virtual)
	s := &stage{T: t, world: env, dir: filepath.Join(t.TempDir(), "landscape"), api: map[string]dynamic.Interface{}}
	require.NoError(t, os.CopyFS(s.dir, os.DirFS(filepath.Join(env.Root, "landscapes/local"))))
	for _, name := range []string{"golden", "projects", "seeds"} {
		require.NoError(t, os.RemoveAll(s.path(name)))
	}
	require.NoError(t, os.MkdirAll(s.path("components/garden/kube-apiserver"), 0o755))
	s.write("components/garden/kube-apiserver/kustomization.yaml", noWaitOverlay)
	text := s.read("landscape.yaml")
	text = strings.Replace(text, "    seeds:\n      local:\n        context: pergola-local\n", "    virtual:\n      context: pergola-virtual\n", 1)
	s.write("landscape.yaml", text)
	for name, config := range env.configs {
		somebody := rest.CopyConfig(config)
		somebody.UserAgent = "somebody"
		client, err := dynamic.NewForConfig(somebody)
		require.NoError(t, err)
		s.api[name] = client
	}
	return s
}

// withT returns the stage for one test.
func (s *stage) withT(t *testing.T) *stage {
	out := *s
	out.T = t
	return &out
}

func (s *stage) path(name string) string { return filepath.Join(s.dir, filepath.FromSlash(name)) }

func (s *stage) read(name string) string {
	s.Helper()
	text, err := os.ReadFile(s.path(name))
	require.NoError(s, err)
	return string(text)
}

func (s *stage) write(name, text string) {
	s.Helper()
	require.NoError(s, os.WriteFile(s.path(name), []byte(text), 0o600))
}

// newConverger is one run of `pergola apply`, which ends with the test at the latest.
func (s *stage) newConverger(steps time.Duration) *landscape.Converger {
	s.Helper()
	key, err := os.ReadFile(filepath.Join(s.world.Root, "landscapes/local/.sops/age.key"))
	require.NoError(s, err)
	ids, err := landscapes.ParseAgeIdentities(string(key))
	require.NoError(s, err)
	l, violations, err := landscapes.Load(context.Background(), s.dir, landscapes.Options{AgeIdentities: ids})
	require.NoError(s, err)
	found, err := l.Validate(context.Background(), schemas.Options{})
	require.NoError(s, err)
	require.False(s, schemas.HasErrors(append(violations, found...)), "%v", append(violations, found...))
	gate, err := landscape.DeletionGate(l, nil)
	require.NoError(s, err)
	c, err := landscape.New(l, landscape.Options{
		Catalogue:   components.FS,
		Connections: landscape.Connections{Configs: s.world.configs},
		Clock:       clock.RealClock{},
		Process:     landscape.ProcessIdentity{Holder: "adoption " + s.Name(), Version: components.Version},
		Timing:      landscape.Timing{Thresholds: landscape.ConditionThresholds(l), CareInterval: time.Second, StepTimeout: steps}, Permits: landscape.Permits{Gate: gate},
	})
	require.NoError(s, err)
	s.Cleanup(c.Close)
	return c
}

// apply applies the landscape; steps shortens the timeout of each step.
func (s *stage) apply(steps time.Duration) (*landscape.RunReport, error) {
	s.Helper()
	c := s.newConverger(steps)
	defer c.Close()
	report, err := c.Apply(s.context())
	for _, p := range apply.Problems(err) {
		s.Logf("problem: %s", p)
	}
	return report, err
}

func (s *stage) context() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), runTimeout)
	s.Cleanup(cancel)
	return ctx
}
