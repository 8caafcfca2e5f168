// SPDX-License-Identifier: Apache-2.0

// Package apiserver gives tests a real API server: etcd and kube-apiserver from the folder that
// KUBEBUILDER_ASSETS names, which `make test` sets. Tests of several clusters with controllers use
// hack/local instead.
package apiserver

import (
	"fmt"
	"os"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/pergola-dev/pergola/hack/childprocess"
)

// assetsVariable is the environment variable that names the folder of the programs.
const assetsVariable = "KUBEBUILDER_ASSETS"

// IsAvailable reports whether the programs are available.
func IsAvailable() bool { return os.Getenv(assetsVariable) != "" }

// StartEnvironment starts the servers of an environment. They end with this process, however it
// ends.
func StartEnvironment(env *envtest.Environment) (config *rest.Config, err error) {
	if err := tieToStarter(env); err != nil {
		return nil, err
	}
	childprocess.RunInLastingThread(func() error {
		var err error
		config, err = env.Start()
		return err
	}, &err)
	return config, err
}

// SkipIfUnavailable skips a test if the programs are not available.
func SkipIfUnavailable(t testing.TB) {
	t.Helper()
	if !IsAvailable() {
		t.Skip("KUBEBUILDER_ASSETS is not set: needs etcd and kube-apiserver (make test sets it)")
	}
}

// Acquire returns a server with some definitions that is used exclusively until end is called. It
// comes from the pool of the run (command pool) if there is one.
func Acquire(definitions ...*apiextensionsv1.CustomResourceDefinition) (config *rest.Config, end func() error, err error) {
	if socket := os.Getenv(PoolVariable); socket != "" {
		return leaseServer(socket, definitions)
	}
	env := &envtest.Environment{CRDs: definitions}
	if config, err = StartEnvironment(env); err != nil {
		return nil, nil, err
	}
	return config, env.Stop, nil
}

// Main is the TestMain of a package whose tests share one server with some definitions; it returns
// the exit code. Without programs the tests run without a server: config is not called.
func Main(m *testing.M, config func(*rest.Config), definitions ...*apiextensionsv1.CustomResourceDefinition) int {
	if !IsAvailable() {
		return m.Run()
	}
	started, end, err := Acquire(definitions...)
	if err != nil {
		fmt.Fprintln(os.Stderr, "starting the API server:", err)
		return 1
	}
	config(started)
	code := m.Run()
	if err := end(); err != nil {
		fmt.Fprintln(os.Stderr, "stopping the API server:", err)
	}
	return code
}

// Start gives one test its own server.
func Start(t testing.TB, definitions ...*apiextensionsv1.CustomResourceDefinition) *rest.Config {
	t.Helper()
	SkipIfUnavailable(t)
	config, end, err := Acquire(definitions...)
	if err != nil {
		t.Fatal("starting the API server: ", err)
	}
	t.Cleanup(func() {
		if err := end(); err != nil {
			t.Error("stopping the API server: ", err)
		}
	})
	return config
}
