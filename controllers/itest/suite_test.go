package itest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// clusters that every test uses.
const (
	runtimeCluster = "runtime"
	virtualCluster = "virtual"
	seedCluster    = "local"
)

var clusterNames = []string{runtimeCluster, virtualCluster, seedCluster}

// environment is what the tests share; it is made once and does not change.
type environment struct {
	root       string // the repository
	dir        string // state of the local clusters
	local      string // the command that starts them
	pergola    string // the built program
	kubeconfig string
	configs    map[string]*rest.Config
	age        string // the key file of the demonstration landscape
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
	root, err := repository()
	if err != nil {
		return 1, err
	}
	dir, err := os.MkdirTemp("", "pergola-itest-")
	if err != nil {
		return 1, err
	}
	defer os.RemoveAll(dir)
	env = environment{root: root, dir: filepath.Join(dir, "clusters"), age: filepath.Join(root, "landscapes/local/.sops/age.key")}
	if missing := missingBinaries(root); missing != "" {
		fmt.Fprintln(os.Stderr, "integration tests are left out:", missing)
		return m.Run(), nil
	}
	if err := env.build(dir); err != nil {
		return 1, err
	}
	defer func() {
		if out, err := env.localCommand("clean"); err != nil {
			fmt.Fprintf(os.Stderr, "stopping the local clusters: %v\n%s", err, out)
		}
	}()
	if err := env.up(); err != nil {
		return 1, err
	}
	return m.Run(), nil
}

func repository() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for ; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", errors.New("no go.mod above the working directory")
		}
	}
}

// missingBinaries says why clusters cannot be started in reasonable time: building them takes many minutes.
func missingBinaries(root string) string {
	if os.Getenv("KUBEBUILDER_ASSETS") != "" {
		return ""
	}
	for _, name := range []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok"} {
		if _, err := os.Stat(filepath.Join(root, "hack/local/bin", name)); err != nil {
			return name + " is not built: run `make test`, or `bin/pergola-local build` once, or set KUBEBUILDER_ASSETS"
		}
	}
	return ""
}

// build makes the two programs.
func (e *environment) build(dir string) error {
	e.pergola, e.local = filepath.Join(dir, "pergola"), os.Getenv("PERGOLA_LOCAL")
	if err := command(e.root, filepath.Join(e.root, "hack/build.sh"), e.pergola, "./cmd/pergola"); err != nil {
		return err
	}
	if e.local == "" {
		e.local = filepath.Join(dir, "pergola-local")
		return command(filepath.Join(e.root, "hack/local"), "go", "build", "-o", e.local, ".")
	}
	if !filepath.IsAbs(e.local) {
		e.local = filepath.Join(e.root, e.local)
	}
	return nil
}

func command(dir, name string, args ...string) error {
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, out)
	}
	return nil
}

func (e *environment) localCommand(args ...string) ([]byte, error) {
	cmd := exec.Command(e.local, append(args, "--dir", e.dir)...)
	cmd.Dir = e.root
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return append(out, stderr.Bytes()...), err
	}
	return out, nil
}

// localState is what the local command prints about its clusters.
type localState struct {
	Kubeconfig string `json:"kubeconfig"`
	Clusters   []struct {
		Name  string `json:"name"`
		Parts []struct {
			Name string `json:"name"`
			PID  int    `json:"pid"`
		} `json:"parts"`
	} `json:"clusters"`
}

func (e *environment) up() error {
	out, err := e.localCommand("up", "--clusters", strings.Join(clusterNames, ","), "--json")
	if err != nil {
		return fmt.Errorf("start the local clusters: %w\n%s", err, out)
	}
	var state localState
	if err := json.Unmarshal(out, &state); err != nil {
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

// processOf finds a part of a local cluster, to be stopped by a test.
func (e *environment) processOf(cluster, part string) (*os.Process, error) {
	out, err := e.localCommand("status", "-o", "json")
	if err != nil {
		return nil, fmt.Errorf("%w\n%s", err, out)
	}
	var state localState
	if err := json.Unmarshal(out, &state); err != nil {
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

// TestLandscape runs all tests in their order: building the clusters up takes most of the time, so they share them.
func TestLandscape(t *testing.T) {
	if env.configs == nil {
		t.Skip(missingBinaries(env.root))
	}
	started := time.Now()
	s := newStage(t)
	for _, step := range []struct {
		name string
		test func(*testing.T, *stage)
	}{
		{"a fresh landscape converges", testFresh},
		{"nothing is written when nothing changed", testUnchanged},
		{"only what changed is touched", testOneField},
		{"a generated Secret becomes another one", testGeneratedSecret},
		{"drift is repaired", testDrift},
		{"a disabled component goes, and comes back", testDisable},
		{"a component below the gate goes at once", testDisableSmall},
		{"a Deployment that never becomes ready", testNeverReady},
		{"an unreachable seed", testUnreachableSeed},
		{"an expired certificate", testExpiredCertificate},
		{"objects that cannot be applied", testObjectFaults},
		{"a user who may not", testForbidden},
		{"an invalid landscape", testInvalid},
		{"a change that the API forbids", testForbiddenChange},
		{"one at a time", testLease},
		{"an interrupted run", testInterrupt},
		{"a Shoot that is gone from Git", testRemovedShoot},
	} {
		if !t.Run(step.name, func(t *testing.T) { step.test(t, s.on(t)) }) {
			t.Fatalf("the rest is left out: it builds on %q", step.name)
		}
		t.Logf("%s after %s", step.name, time.Since(started).Round(time.Second))
	}
}

// patience is how long anything may take: machines that run much else can be twenty times slower. Whoever waits looks often, so that a
// quiet machine does not wait longer for it.
const patience = 5 * time.Minute

func testContext(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}
