package variants

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
)

// environment is what all tests look at; it is made once.
type environment struct {
	root string // the repository
	// dir is the folder of this run, and state the one of the clusters in it. Paths of sockets are short, so it is, too.
	dir, state string
	local      string // the command that starts clusters
	pergola    string // the built program
	kubeconfig string
	proxy      string // by which the inside is reached
	server     *server
	keys       *keys
}

var env environment

// patience is how long anything may take: machines that run much else can be twenty times slower.
const patience = 5 * time.Minute

// keepVariable names the folder where clusters stay up.
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

// notRun is why the tests are left out; empty where they are not.
var notRun string

func run(m *testing.M) (code int, err error) {
	if env.root, err = repository(); err != nil {
		return 1, err
	}
	if notRun = missing(env.root); notRun != "" {
		return m.Run(), nil
	}
	kept := os.Getenv(keepVariable)
	if env.dir = kept; kept == "" {
		if env.dir, err = os.MkdirTemp("", "variants"); err != nil {
			return 1, err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(env.dir)) }()
	}
	env.state = filepath.Join(env.dir, "s")
	if err := env.build(); err != nil {
		return 1, err
	}
	if kept == "" {
		defer func() {
			if out, failed := env.clusters("clean"); failed != nil {
				err = errors.Join(err, fmt.Errorf("stopping the local clusters: %w\n%s", failed, out))
			}
		}()
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

// here is called by each test first: it leaves it out where nothing runs.
func here(t *testing.T) {
	t.Helper()
	if notRun != "" {
		t.Skip(notRun)
	}
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

// missing says why clusters cannot be started in reasonable time: building their executables takes many minutes.
func missing(root string) string {
	for _, name := range []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok", "node"} {
		found := false
		for _, folder := range []string{os.Getenv("KUBEBUILDER_ASSETS"), filepath.Join(root, "hack/local/bin")} {
			_, err := os.Stat(filepath.Join(folder, name))
			found = found || folder != "" && err == nil
		}
		if !found {
			return name + " is not built: run `make test`, or `bin/pergola-local build` once, or set KUBEBUILDER_ASSETS"
		}
	}
	return ""
}

// build makes the two programs. The product has to be static to run in a pod.
func (e *environment) build() error {
	e.pergola, e.local = filepath.Join(e.dir, "pergola"), os.Getenv("PERGOLA_LOCAL")
	if _, err := command(e.root, filepath.Join(e.root, "hack/build.sh"), e.pergola, "./cmd/pergola"); err != nil {
		return err
	}
	if e.local == "" {
		e.local = filepath.Join(e.dir, "pergola-local")
		_, err := command(filepath.Join(e.root, "hack/local"), "go", "build", "-trimpath", "-o", e.local, ".")
		return err
	}
	if !filepath.IsAbs(e.local) {
		e.local = filepath.Join(e.root, e.local)
	}
	return nil
}

// command runs something and gives what it has printed to standard output.
func command(dir, name string, args ...string) ([]byte, error) {
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return append(out, stderr.Bytes()...), fmt.Errorf("%s %s: %w\n%s%s", filepath.Base(name), strings.Join(args, " "), err, out, stderr.Bytes())
	}
	return out, nil
}

// clusters runs the command that starts them.
func (e *environment) clusters(args ...string) ([]byte, error) {
	return command(e.root, e.local, append([]string{"--dir", e.state}, args...)...)
}

// up starts the clusters; the reason says that pods cannot run here.
func (e *environment) up() (reason string, err error) {
	out, err := e.clusters("up", "--clusters", runtimeCluster+","+seedCluster, "--pods", "auto", "--kubelets", "3", "--image", "pergola="+e.pergola, "--json")
	if err != nil {
		return "", err
	}
	var status struct {
		Kubeconfig string `json:"kubeconfig"`
		Living     bool   `json:"living"`
		Proxy      string `json:"proxy"`
	}
	if err := json.Unmarshal(out, &status); err != nil {
		return "", fmt.Errorf("reading what the local clusters say: %w", err)
	}
	if !status.Living {
		return "pods cannot run here (local up --pods run says why)", nil
	}
	e.kubeconfig, e.proxy = status.Kubeconfig, status.Proxy
	return "", nil
}

// converge applies the landscape. Its output is shown when it fails.
func (e *environment) converge() error {
	landscape, err := e.writeLandscape()
	if err != nil {
		return err
	}
	if err := e.prepareSeed(landscape); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, e.pergola, "apply", landscape, "--timeout", (2*patience - time.Minute).String())
	cmd.Env = append(os.Environ(), "KUBECONFIG="+e.kubeconfig, "SOPS_AGE_KEY_FILE="+filepath.Join(e.root, "landscapes/local/.sops/age.key"))
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	started := time.Now()
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("pergola apply: %w\n%s", err, out)
	}
	fmt.Fprintf(os.Stderr, "converged after %s\n", time.Since(started).Round(time.Second))
	return nil
}
