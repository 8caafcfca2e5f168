// SPDX-License-Identifier: Apache-2.0

package landscape

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/pergola-dev/pergola/hack/testclusters"
	"github.com/pergola-dev/pergola/hack/testselection"
)

// Clusters that every test uses.
const (
	runtimeCluster = "runtime"
	virtualCluster = "virtual"
	seedCluster    = "local"
)

var clusterNames = []string{runtimeCluster, virtualCluster, seedCluster}

// environment is shared by the tests; it is created once and does not change.
type environment struct {
	testclusters.Programs
	kubeconfig string
	configs    map[string]*rest.Config
	ageKeyFile string // the key file of the demonstration landscape
}

var env environment

func TestMain(m *testing.M) {
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "integration tests:", err)
		os.Exit(1)
	}
	os.Exit(code)
}

func run(m *testing.M) (int, error) {
	root, err := testclusters.RepositoryRoot()
	if err != nil {
		return 1, err
	}
	dir, err := os.MkdirTemp("", "pergola-itest-")
	if err != nil {
		return 1, err
	}
	defer os.RemoveAll(dir)
	env.Root, env.ageKeyFile = root, filepath.Join(root, "landscapes/local/.sops/age.key")
	if missing := testclusters.MissingRequirement(root, false); missing != "" {
		fmt.Fprintln(os.Stderr, "integration tests are left out:", missing)
		return m.Run(), nil
	}
	if env.Programs, err = testclusters.Build(root, dir, filepath.Join(dir, "clusters")); err != nil {
		return 1, err
	}
	defer func() {
		if err := env.Clean(); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}()
	if err := env.up(); err != nil {
		return 1, err
	}
	return m.Run(), nil
}

func (e *environment) up() error {
	state, err := e.Up("--clusters", strings.Join(clusterNames, ","))
	if err != nil {
		return err
	}
	e.kubeconfig, e.configs = state.Kubeconfig, map[string]*rest.Config{}
	for _, name := range clusterNames {
		config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
			&clientcmd.ClientConfigLoadingRules{ExplicitPath: state.Kubeconfig},
			&clientcmd.ConfigOverrides{CurrentContext: "pergola-" + name}).ClientConfig()
		if err != nil {
			return err
		}
		config.UserAgent, config.QPS, config.WarningHandler = "pergola", -1, rest.NoWarnings{}
		e.configs[name] = config
	}
	return nil
}

// findProcess finds a process of a local cluster, for a test to stop it.
func (e *environment) findProcess(cluster, part string) (*os.Process, error) {
	state, err := e.Status()
	if err != nil {
		return nil, err
	}
	for _, c := range state.Clusters {
		for _, p := range c.Parts {
			if c.Name == cluster && p.Name == part {
				return os.FindProcess(p.PID)
			}
		}
	}
	return nil, fmt.Errorf("no %s of cluster %s", part, cluster)
}

// TestLandscapeOnClusters runs all tests in order. They share the clusters, whose creation takes
// most of the time.
func TestLandscapeOnClusters(t *testing.T) {
	if env.configs == nil {
		t.Skip(testclusters.MissingRequirement(env.Root, false))
	}
	started := time.Now()
	s := newStage(t)
	for _, step := range []struct {
		name string
		test func(*testing.T, *testStage)
	}{
		{"a fresh landscape converges", testFreshLandscape},
		{"nothing is written when nothing changed", testNoChanges},
		{"only what changed is touched", testFieldChange},
		{"a generated Secret becomes another one", testGeneratedSecret},
		{"drift is repaired", testDrift},
		{"a disabled component goes, and comes back", testDisableLargeComponent},
		{"a component below the gate goes at once", testDisableSmallComponent},
		{"a Deployment that never becomes ready", testNeverReady},
		{"an unreachable seed", testUnreachableSeed},
		{"an expired certificate", testExpiredCertificate},
		{"objects that cannot be applied", testObjectFaults},
		{"a user who may not", testMissingRights},
		{"an invalid landscape", testInvalidLandscape},
		{"a change that the API forbids", testImmutableField},
		{"one at a time", testConcurrentRun},
		{"an interrupted run", testInterrupt},
		{"a Shoot that is gone from Git", testRemovedShoot},
	} {
		if !testselection.HasPart(t, step.name) {
			continue
		}
		if !t.Run(step.name, func(t *testing.T) { step.test(t, s.withTest(t)) }) {
			t.Fatalf("the rest is left out: it builds on %q", step.name)
		}
		t.Logf("%s after %s", step.name, time.Since(started).Round(time.Second))
	}
}

// waitTimeout is the timeout of every wait: busy machines can be twenty times slower. Frequent
// polling avoids longer waits on a quiet machine.
const waitTimeout = 5 * time.Minute

func testContext(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), waitTimeout)
	t.Cleanup(cancel)
	return ctx
}
