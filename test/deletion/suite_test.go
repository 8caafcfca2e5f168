// SPDX-License-Identifier: Apache-2.0

package deletion

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
	"github.com/pergola-dev/pergola/controllers/charts"
	"github.com/pergola-dev/pergola/controllers/landscape"
	"github.com/pergola-dev/pergola/hack/testclusters"
	"github.com/pergola-dev/pergola/landscapes"
	"github.com/pergola-dev/pergola/schemas"
)

// runTimeout is the timeout of one run on a busy machine.
const runTimeout = 4 * time.Minute

var env struct {
	testclusters.Programs
	configs map[string]*rest.Config
}

func TestMain(m *testing.M) {
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "tests of the end of a Garden:", err)
		os.Exit(1)
	}
	os.Exit(code)
}

func run(m *testing.M) (int, error) {
	root, err := testclusters.RepositoryRoot()
	if err != nil {
		return 1, err
	}
	env.Root = root
	if testclusters.MissingRequirement(root, false) != "" {
		return m.Run(), nil
	}
	dir, err := os.MkdirTemp("", "pergola-gardendeletion-")
	if err != nil {
		return 1, err
	}
	defer os.RemoveAll(dir)
	if env.Programs, err = testclusters.Build(root, dir, filepath.Join(dir, "clusters")); err != nil {
		return 1, err
	}
	defer func() {
		if err := env.Clean(); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}()
	state, err := env.Up("--clusters", "runtime,virtual")
	if err != nil {
		return 1, err
	}
	env.configs = map[string]*rest.Config{}
	for _, name := range []string{landscape.Runtime, landscape.Virtual} {
		config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(&clientcmd.ClientConfigLoadingRules{ExplicitPath: state.Kubeconfig},
			&clientcmd.ConfigOverrides{CurrentContext: "pergola-" + name}).ClientConfig()
		if err != nil {
			return 1, err
		}
		config.UserAgent, config.QPS, config.WarningHandler = "pergola", -1, rest.NoWarnings{}
		env.configs[name] = config
	}
	return m.Run(), nil
}

// deletionStage is a landscape with only a Garden, and access to its clusters as a person.
type deletionStage struct {
	*testing.T
	dir string
	api map[string]dynamic.Interface
}

// minReadyPatch removes the minReadySeconds of simulated API servers.
const minReadyPatch = `
patches:
- target: {kind: Deployment}
  patch: |
    - {op: replace, path: /spec/minReadySeconds, value: 0}
`

func newStage(t *testing.T) *deletionStage {
	s := &deletionStage{T: t, dir: filepath.Join(t.TempDir(), "landscape"), api: map[string]dynamic.Interface{}}
	require.NoError(t, os.CopyFS(s.dir, os.DirFS(filepath.Join(env.Root, "landscapes/local"))))
	for _, name := range []string{"golden", "projects", "seeds"} {
		require.NoError(t, os.RemoveAll(s.path(name)))
	}
	require.NoError(t, os.MkdirAll(s.path("components/garden/kube-apiserver"), 0o755))
	s.write("components/garden/kube-apiserver/kustomization.yaml", minReadyPatch)
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

// withTest returns the stage for one test.
func (s *deletionStage) withTest(t *testing.T) *deletionStage {
	out := *s
	out.T = t
	return &out
}

func (s *deletionStage) path(name string) string {
	return filepath.Join(s.dir, filepath.FromSlash(name))
}

func (s *deletionStage) read(name string) string {
	s.Helper()
	text, err := os.ReadFile(s.path(name))
	require.NoError(s, err)
	return string(text)
}

func (s *deletionStage) write(name, text string) {
	s.Helper()
	require.NoError(s, os.WriteFile(s.path(name), []byte(text), 0o600))
}

// newConverger is one run of `pergola apply`; it ends no later than the test.
func (s *deletionStage) newConverger(steps time.Duration, approved ...string) *landscape.Converger {
	s.Helper()
	key, err := os.ReadFile(filepath.Join(env.Root, "landscapes/local/.sops/age.key"))
	require.NoError(s, err)
	ids, err := landscapes.ParseAgeIdentities(string(key))
	require.NoError(s, err)
	l, violations, err := landscapes.Load(context.Background(), s.dir, landscapes.Options{AgeIdentities: ids})
	require.NoError(s, err)
	found, err := l.Validate(context.Background(), schemas.Options{})
	require.NoError(s, err)
	require.False(s, schemas.HasErrors(append(violations, found...)), "%v", append(violations, found...))
	gate, err := landscape.DeletionGate(l, approved)
	require.NoError(s, err)
	c, err := landscape.New(l, landscape.Options{
		Catalogue:   components.FS,
		Shared:      landscape.SharedState{Charts: &charts.Puller{}},
		Connections: landscape.Connections{Configs: env.configs},
		Clock:       clock.RealClock{},
		Process:     landscape.ProcessIdentity{Holder: "gardendeletion " + s.Name(), Version: components.Version},
		Timing:      landscape.Timing{Thresholds: landscape.ConditionThresholds(l), CareInterval: time.Second, StepTimeout: steps}, Permits: landscape.Permits{Gate: gate},
	})
	require.NoError(s, err)
	s.Cleanup(c.Close)
	return c
}

// apply applies the landscape; steps shortens the timeout of each step.
func (s *deletionStage) apply(steps time.Duration, approved ...string) (*landscape.RunReport, error) {
	s.Helper()
	c := s.newConverger(steps, approved...)
	defer c.Close()
	report, err := c.Apply(s.context())
	for _, p := range apply.Problems(err) {
		s.Logf("problem: %s", p)
	}
	return report, err
}

func (s *deletionStage) context() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), runTimeout)
	s.Cleanup(cancel)
	return ctx
}
