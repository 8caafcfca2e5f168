// SPDX-License-Identifier: Apache-2.0

package binaries

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Names of the executables.
const (
	Etcd              = "etcd"
	APIServer         = "kube-apiserver"
	ControllerManager = "kube-controller-manager"
	Scheduler         = "kube-scheduler"
	Kwok              = "kwok"
	// Node is program node of this module.
	Node = "node"
)

// buildPackages returns the Go package that each executable is built from, in build order.
func buildPackages() []binary {
	return []binary{
		{name: Etcd, pkg: "go.etcd.io/etcd/server/v3"},
		{name: Kwok, pkg: "sigs.k8s.io/kwok/cmd/kwok"},
		{name: APIServer, pkg: "k8s.io/kubernetes/cmd/kube-apiserver"},
		{name: ControllerManager, pkg: "k8s.io/kubernetes/cmd/kube-controller-manager"},
		{name: Scheduler, pkg: "k8s.io/kubernetes/cmd/kube-scheduler"},
		{name: Node, pkg: "github.com/pergola-dev/pergola/hack/local/node", isOwnModule: true},
	}
}

type binary struct {
	name, pkg string
	// isOwnModule means that it is also built from the files of this module.
	isOwnModule bool
}

// Source tells where executables come from.
type Source struct {
	// Assets is a folder of executables that are used unchanged (KUBEBUILDER_ASSETS). It may be
	// empty or incomplete.
	Assets string
	// Module is the folder of the Go module whose go.mod pins the versions.
	Module string
	// Bin is the folder for the built executables.
	Bin string
	// Progress takes progress messages for people.
	Progress Progress
}

// Paths maps the name of an executable to its file.
type Paths map[string]string

// inAssets returns the path of the executable in the assets folder, or "".
func (s Source) inAssets(name string) (string, error) {
	if s.Assets == "" {
		return "", nil
	}
	path, err := filepath.Abs(filepath.Join(s.Assets, name))
	if err != nil {
		return "", fmt.Errorf("resolving KUBEBUILDER_ASSETS: %w", err)
	}
	info, err := os.Stat(path)
	if err != nil || info.IsDir() {
		return "", nil
	}
	if info.Mode()&0o111 == 0 {
		return "", fmt.Errorf("%s in KUBEBUILDER_ASSETS is not executable", path)
	}
	return path, nil
}

// linkerFlags strip the executables and set Kubernetes' version, which go build does not know:
// without it /version says v0.0.0-master.
func linkerFlags(kubernetesVersion string) string {
	const variables = "k8s.io/component-base/version"
	flags := []string{"-s", "-w"}
	major, minor, _ := strings.Cut(strings.TrimPrefix(kubernetesVersion, "v"), ".")
	minor, _, _ = strings.Cut(minor, ".")
	for _, v := range []struct{ name, value string }{
		{"gitVersion", kubernetesVersion}, {"gitMajor", major}, {"gitMinor", minor},
		{"gitTreeState", "archive"}, {"gitCommit", ""},
	} {
		flags = append(flags, fmt.Sprintf("-X %s.%s=%s", variables, v.name, v.value))
	}
	return strings.Join(flags, " ")
}

// Names returns the names of all executables that clusters need.
func Names() []string {
	var names []string
	for _, candidate := range buildPackages() {
		names = append(names, candidate.name)
	}
	return names
}
