// Package testclusters is for tests of the whole: it builds the programs that they run, starts
// local clusters (hack/local) of a folder, and says what is missing for that. Tests that need one
// API server only use package apiserver.
package testclusters

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"

	"github.com/pergola-dev/pergola/hack/mortal"
)

// Repository is the folder of the go.mod that the working directory is under.
func Repository() (string, error) {
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

// Missing says why no clusters are started: nobody asked for servers, or building their executables
// takes many minutes. living adds what runs pods for real.
func Missing(root string, living bool) string {
	if os.Getenv("KUBEBUILDER_ASSETS") == "" {
		return "KUBEBUILDER_ASSETS is not set: needs local clusters (make test sets it)"
	}
	names := []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok"}
	if living {
		names = append(names, "node")
	}
	for _, name := range names {
		if !isIn(os.Getenv("KUBEBUILDER_ASSETS"), name) && !isIn(filepath.Join(root, "hack/local/bin"), name) {
			return name + " is not built: run `make test`, or `bin/pergola-local build` once, or set KUBEBUILDER_ASSETS"
		}
	}
	return ""
}

func isIn(folder, name string) bool {
	if folder == "" {
		return false
	}
	_, err := os.Stat(filepath.Join(folder, name))
	return err == nil
}

// Programs of a test, and where their clusters have their state.
type Programs struct {
	// Root is the repository, State the folder of the clusters.
	Root, State string
	// Pergola is static, as pods need it; Local is the command of hack/local.
	Pergola, Local string
	// Keep says that the clusters stay when the test ends.
	Keep bool
}

// Build makes both programs in a folder. PERGOLA_LOCAL may name a command of hack/local that is
// there already.
func Build(root, dir, state string) (Programs, error) {
	p := Programs{Root: root, State: state, Pergola: filepath.Join(dir, "pergola"), Local: os.Getenv("PERGOLA_LOCAL")}
	if _, err := run(root, filepath.Join(root, "hack/build.sh"), p.Pergola, "./cmd/pergola"); err != nil {
		return p, err
	}
	switch {
	case p.Local == "":
		p.Local = filepath.Join(dir, "pergola-local")
		_, err := run(filepath.Join(root, "hack/local"), "go", "build", "-trimpath", "-o", p.Local, ".")
		return p, err
	case !filepath.IsAbs(p.Local):
		p.Local = filepath.Join(root, p.Local)
	}
	return p, nil
}

// Clusters runs the command of hack/local with the state folder, and gives what it has printed to
// standard output.
func (p Programs) Clusters(args ...string) ([]byte, error) {
	return run(p.Root, p.Local, append([]string{"--dir", p.State}, args...)...)
}

// Status is what the command prints of its clusters as JSON, as far as tests look at it.
type Status struct {
	Kubeconfig string `json:"kubeconfig"`
	Living     bool   `json:"living"`
	Proxy      string `json:"proxy"`
	Clusters   []struct {
		Name  string `json:"name"`
		Parts []struct {
			Name string `json:"name"`
			PID  int    `json:"pid"`
		} `json:"parts"`
	} `json:"clusters"`
}

// Up starts clusters. They are apart from this process, and gone soon after it, unless they are to
// be kept: a test that is killed does not stop them.
func (p Programs) Up(args ...string) (Status, error) {
	if _, before := ending.LoadOrStore(p.State, true); !before && !p.Keep {
		if err := mortal.After(p.Local, "--dir", p.State, "clean"); err != nil {
			return Status{}, err
		}
	}
	return p.status(append([]string{"up", "--json"}, args...)...)
}

// ending are the folders whose clusters go after this process.
var ending sync.Map

// Status asks how they are.
func (p Programs) Status() (Status, error) { return p.status("status", "-o", "json") }

func (p Programs) status(args ...string) (Status, error) {
	var out Status
	text, err := p.Clusters(args...)
	if err != nil {
		return out, err
	}
	if err := json.Unmarshal(text, &out); err != nil {
		return out, fmt.Errorf("reading what the local clusters say: %w", err)
	}
	return out, nil
}

// Clean stops the clusters and removes their state.
func (p Programs) Clean() error {
	if _, err := p.Clusters("clean"); err != nil {
		return fmt.Errorf("stopping the local clusters: %w", err)
	}
	return nil
}

// run gives what a command has printed to standard output; the error has all that it has printed.
func run(dir, name string, args ...string) ([]byte, error) {
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w\n%s%s", filepath.Base(name), strings.Join(args, " "), err, out, stderr.Bytes())
	}
	return out, nil
}
