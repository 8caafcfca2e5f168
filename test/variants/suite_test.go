// SPDX-License-Identifier: Apache-2.0

package variants

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/pergola-dev/pergola/hack/testclusters"
)

// environment is shared by all tests and created once.
type environment struct {
	testclusters.Programs
	dir        string // for this run
	kubeconfig string
	proxy      string // proxy into the pod network
	server     *testServer
	keys       *testKeys
}

var env environment

// waitTimeout is the timeout of every wait: busy machines can be twenty times slower.
const waitTimeout = 10 * time.Minute

// clusterFolderVariable names the folder of clusters that stay up.
const clusterFolderVariable = "PERGOLA_VARIANTS"

func TestMain(m *testing.M) {
	if folder := os.Getenv(serverFolderVariable); folder != "" {
		fmt.Fprintln(os.Stderr, serve(folder))
		os.Exit(1)
	}
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "variants of control planes:", err)
		code = 1
	}
	os.Exit(code)
}

// skipReason is the reason to skip the tests, or empty.
var skipReason string

func run(m *testing.M) (code int, err error) {
	flag.Parse() // for testing.Short
	root, err := testclusters.RepositoryRoot()
	if err != nil {
		return 1, err
	}
	if skipReason = testclusters.MissingRequirement(root, true); skipReason != "" {
		return m.Run(), nil
	}
	kept := os.Getenv(clusterFolderVariable)
	if env.dir = kept; kept == "" {
		if env.dir, err = os.MkdirTemp("", "variants"); err != nil {
			return 1, err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(env.dir)) }()
	}
	// Paths of sockets are short, so this one is, too.
	if env.Programs, err = testclusters.Build(root, env.dir, filepath.Join(env.dir, "s")); err != nil {
		return 1, err
	}
	if env.KeepClusters = kept != ""; !env.KeepClusters {
		defer func() { err = errors.Join(err, env.Clean()) }()
	}
	if skipReason, err = env.startClusters(); err != nil || skipReason != "" {
		return m.Run(), err
	}
	if env.keys, err = newKeys(filepath.Join(env.dir, "server")); err != nil {
		return 1, err
	}
	if env.server, err = startServer(); err != nil {
		return 1, err
	}
	defer env.server.stop()
	if err := env.converge(); err != nil {
		return 1, err
	}
	return m.Run(), nil
}

// skipIfNotRunning skips a test if nothing runs; each test calls it first.
func skipIfNotRunning(t *testing.T) {
	t.Helper()
	if skipReason != "" {
		t.Skip(skipReason)
	}
}

// startClusters starts the clusters. A reason means that pods cannot run here.
func (e *environment) startClusters() (reason string, err error) {
	status, err := e.Up("--clusters", runtimeCluster+","+seedCluster, "--pods", "auto", "--kubelets", "3", "--image", "pergola="+e.Pergola)
	if err != nil {
		return "", err
	}
	if !status.Living {
		return "pods cannot run here (local up --pods run says why)", nil
	}
	e.kubeconfig, e.proxy = status.Kubeconfig, status.Proxy
	return "", nil
}

// converge applies the landscape and shows the output if it fails.
func (e *environment) converge() error {
	landscape, err := e.writeLandscape()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*waitTimeout)
	defer cancel()
	started := time.Now()
	// On a busy machine a lease may be lost; the next run completes the rest.
	for {
		cmd := exec.CommandContext(ctx, e.Pergola, "apply", landscape, "--timeout", waitTimeout.String())
		cmd.Env = append(os.Environ(), "KUBECONFIG="+e.kubeconfig, "SOPS_AGE_KEY_FILE="+filepath.Join(e.Root, "landscapes/local/.sops/age.key"))
		cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
		out, err := cmd.CombinedOutput()
		if err == nil {
			break
		}
		if ctx.Err() != nil || !bytes.Contains(out, []byte("the lease was lost")) {
			return fmt.Errorf("pergola apply: %w\n%s", err, out)
		}
	}
	fmt.Fprintf(os.Stderr, "converged after %s\n", time.Since(started).Round(time.Second))
	return nil
}
