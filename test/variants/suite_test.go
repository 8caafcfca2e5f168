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
	server     *server
	keys       *keys
}

var env environment

// patience is the timeout of every wait: busy machines can be twenty times slower.
const patience = 10 * time.Minute

// keepVariable names the folder of clusters that stay up.
const keepVariable = "PERGOLA_VARIANTS"

func TestMain(m *testing.M) {
	if folder := os.Getenv(serveVariable); folder != "" {
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

// notRun is the reason to skip the tests, or empty.
var notRun string

func run(m *testing.M) (code int, err error) {
	flag.Parse() // for testing.Short
	root, err := testclusters.Repository()
	if err != nil {
		return 1, err
	}
	if notRun = testclusters.Missing(root, true); notRun != "" {
		return m.Run(), nil
	}
	kept := os.Getenv(keepVariable)
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
	if env.Keep = kept != ""; !env.Keep {
		defer func() { err = errors.Join(err, env.Clean()) }()
	}
	if notRun, err = env.up(); err != nil || notRun != "" {
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

// here skips a test if nothing runs; each test calls it first.
func here(t *testing.T) {
	t.Helper()
	if notRun != "" {
		t.Skip(notRun)
	}
}

// up starts the clusters. A reason means that pods cannot run here.
func (e *environment) up() (reason string, err error) {
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
	ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
	defer cancel()
	started := time.Now()
	// On a busy machine a lease may be lost; the next run completes the rest.
	for {
		cmd := exec.CommandContext(ctx, e.Pergola, "apply", landscape, "--timeout", patience.String())
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
