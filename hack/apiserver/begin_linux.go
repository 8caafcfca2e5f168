package apiserver

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/pergola-dev/pergola/hack/mortal"
)

// envtest starts programs by their path, and says nothing of how. So it gets the path of this one,
// in a spelling for each: started by that name it asks to end with who started it, and becomes the
// other one.
const (
	asEtcd      = "/proc/self/exe"
	asAPIServer = "/proc/thread-self/exe"
	// starterVariable is the number of the process that starts them.
	starterVariable = "PERGOLA_API_SERVER_STARTER"
)

var becomes = map[string]string{asEtcd: "etcd", asAPIServer: "kube-apiserver"}

func init() {
	starter, name := os.Getenv(starterVariable), becomes[os.Args[0]]
	if starter == "" || name == "" {
		return
	}
	fmt.Fprintln(os.Stderr, become(starter, name))
	os.Exit(1)
}

// become returns only with an error. It is called in the first thread of the process, which is the
// one that stays.
func become(starter, name string) error {
	parent, err := strconv.Atoi(starter)
	if err != nil {
		return fmt.Errorf("%s: %w", starterVariable, err)
	}
	if err := mortal.Tie(parent); err != nil {
		return err
	}
	if err := os.Unsetenv(starterVariable); err != nil {
		return err
	}
	path := filepath.Join(os.Getenv(assets), name)
	return fmt.Errorf("%s: %w", path, syscall.Exec(path, append([]string{path}, os.Args[1:]...), os.Environ()))
}

func tie(env *envtest.Environment) error {
	if !There() {
		return nil // envtest says what is missing
	}
	if env.ControlPlane.Etcd == nil {
		env.ControlPlane.Etcd = &envtest.Etcd{}
	}
	env.ControlPlane.Etcd.Path, env.ControlPlane.GetAPIServer().Path = asEtcd, asAPIServer
	return os.Setenv(starterVariable, strconv.Itoa(os.Getpid()))
}
