// SPDX-License-Identifier: Apache-2.0

// Package testclusters is for end-to-end tests: it builds the programs, starts local clusters
// (hack/local) of a folder, and reports missing executables. Tests that need only one API server
// use package apiserver.
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

	"github.com/pergola-dev/pergola/hack/childprocess"
)

// RepositoryRoot returns the closest folder with a go.mod, from the working directory upwards.
func RepositoryRoot() (string, error) {
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

// MissingRequirement returns why clusters cannot start: KUBEBUILDER_ASSETS is not set, or an
// executable is not built, which takes many minutes. living also requires the executable that runs
// pods.
func MissingRequirement(root string, living bool) string {
	if os.Getenv("KUBEBUILDER_ASSETS") == "" {
		return "KUBEBUILDER_ASSETS is not set: needs local clusters (make test sets it)"
	}
	names := []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok"}
	if living {
		names = append(names, "node")
	}
	for _, name := range names {
		if !hasExecutable(os.Getenv("KUBEBUILDER_ASSETS"), name) && !hasExecutable(filepath.Join(root, "hack/local/bin"), name) {
			return name + " is not built: run `make test`, or `bin/pergola-local build` once, or set KUBEBUILDER_ASSETS"
		}
	}
	return ""
}

func hasExecutable(folder, name string) bool {
	if folder == "" {
		return false
	}
	_, err := os.Stat(filepath.Join(folder, name))
	return err == nil
}

// Programs are the executables of a test and the state folder of its clusters.
type Programs struct {
	// Root is the repository; State is the folder of the clusters.
	Root, State string
	// Pergola is a static program, because pods run it; Local is the command of hack/local.
	Pergola, Local string
	// KeepClusters says that the clusters stay when the test ends.
	KeepClusters bool
}

// Build builds both programs in a folder. PERGOLA_LOCAL may name an existing command of hack/local.
func Build(root, dir, state string) (Programs, error) {
	p := Programs{Root: root, State: state, Pergola: filepath.Join(dir, "pergola"), Local: os.Getenv("PERGOLA_LOCAL")}
	if _, err := runCommand(root, filepath.Join(root, "hack/build.sh"), p.Pergola, "./cmd/pergola"); err != nil {
		return p, err
	}
	switch {
	case p.Local == "":
		p.Local = filepath.Join(dir, "pergola-local")
		_, err := runCommand(filepath.Join(root, "hack/local"), "go", "build", "-trimpath", "-o", p.Local, ".")
		return p, err
	case !filepath.IsAbs(p.Local):
		p.Local = filepath.Join(root, p.Local)
	}
	return p, nil
}

// RunLocal runs the command of hack/local with the state folder and returns its standard output.
func (p Programs) RunLocal(args ...string) ([]byte, error) {
	return runCommand(p.Root, p.Local, append([]string{"--dir", p.State}, args...)...)
}

// Status is the part of the command's JSON output that tests read.
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

// Up starts clusters. They end soon after this process, even if it is killed, unless Keep is set.
func (p Programs) Up(args ...string) (Status, error) {
	if _, before := cleanupRegistered.LoadOrStore(p.State, true); !before && !p.KeepClusters {
		if err := childprocess.RunAfterExit(p.Local, "--dir", p.State, "clean"); err != nil {
			return Status{}, err
		}
	}
	return p.status(append([]string{"up", "--json"}, args...)...)
}

// cleanupRegistered are the state folders of clusters that end after this process.
var cleanupRegistered sync.Map

// Status returns the status of the clusters.
func (p Programs) Status() (Status, error) { return p.status("status", "-o", "json") }

func (p Programs) status(args ...string) (Status, error) {
	var out Status
	text, err := p.RunLocal(args...)
	if err != nil {
		return out, err
	}
	if err := json.Unmarshal(text, &out); err != nil {
		return out, fmt.Errorf("reading the output of the local clusters: %w", err)
	}
	return out, nil
}

// Clean stops the clusters and removes their state.
func (p Programs) Clean() error {
	if _, err := p.RunLocal("clean"); err != nil {
		return fmt.Errorf("stopping the local clusters: %w", err)
	}
	return nil
}

// runCommand returns the standard output of a command; the error has all of its output.
func runCommand(dir, name string, args ...string) ([]byte, error) {
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
