// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/pergola-dev/pergola/hack/childprocess"
)

// envtest starts programs by path and has no hook for more. It gets two spellings of the path of
// this program, which then ties itself to its starter and executes etcd or kube-apiserver.
const (
	etcdAlias      = "/proc/self/exe"
	apiServerAlias = "/proc/thread-self/exe"
	// starterVariable is the environment variable with the process ID of the starter.
	starterVariable = "PERGOLA_API_SERVER_STARTER"
)

var programAliases = map[string]string{etcdAlias: "etcd", apiServerAlias: "kube-apiserver"}

func init() {
	starter, name := os.Getenv(starterVariable), programAliases[os.Args[0]]
	if starter == "" || name == "" {
		return
	}
	fmt.Fprintln(os.Stderr, execProgram(starter, name))
	os.Exit(1)
}

// execProgram returns only on error. It is called in the first thread of the process, which never
// ends.
func execProgram(starter, name string) error {
	parent, err := strconv.Atoi(starter)
	if err != nil {
		return fmt.Errorf("%s: %w", starterVariable, err)
	}
	if err := childprocess.TieToParent(parent); err != nil {
		return err
	}
	if err := os.Unsetenv(starterVariable); err != nil {
		return err
	}
	path := filepath.Join(os.Getenv(assetsVariable), name)
	return fmt.Errorf("%s: %w", path, syscall.Exec(path, append([]string{path}, os.Args[1:]...), os.Environ()))
}

func tieToStarter(env *envtest.Environment) error {
	if !IsAvailable() {
		return nil // envtest reports missing programs
	}
	if env.ControlPlane.Etcd == nil {
		env.ControlPlane.Etcd = &envtest.Etcd{}
	}
	env.ControlPlane.Etcd.Path, env.ControlPlane.GetAPIServer().Path = etcdAlias, apiServerAlias
	return os.Setenv(starterVariable, strconv.Itoa(os.Getpid()))
}
