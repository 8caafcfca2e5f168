// Package apiserver gives tests a real API server: etcd and kube-apiserver from the folder that KUBEBUILDER_ASSETS names, which
// `make test` sets. Tests of several clusters with controllers use hack/local instead.
package apiserver

import (
	"fmt"
	"os"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/pergola-dev/pergola/hack/mortal"
)

// assets is the variable of the environment that names the folder of the programs.
const assets = "KUBEBUILDER_ASSETS"

// There says whether there are programs to start one from.
func There() bool { return os.Getenv(assets) != "" }

// Begin starts the servers of an environment. They end with this process, however it ends.
func Begin(env *envtest.Environment) (config *rest.Config, err error) {
	if err := tie(env); err != nil {
		return nil, err
	}
	mortal.Lasting(func() error {
		var err error
		config, err = env.Start()
		return err
	}, &err)
	return config, err
}

// Needed leaves a test out where there are none.
func Needed(t testing.TB) {
	t.Helper()
	if !There() {
		t.Skip("KUBEBUILDER_ASSETS is not set: needs etcd and kube-apiserver (make test sets it)")
	}
}

// Main is the TestMain of a package whose tests share one server with some definitions; it gives its exit code. Without
// programs the tests run without a server: config is not called.
func Main(m *testing.M, config func(*rest.Config), definitions ...*apiextensionsv1.CustomResourceDefinition) int {
	if !There() {
		return m.Run()
	}
	env := &envtest.Environment{CRDs: definitions}
	started, err := Begin(env)
	if err != nil {
		fmt.Fprintln(os.Stderr, "starting the API server:", err)
		return 1
	}
	config(started)
	code := m.Run()
	if err := env.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, "stopping the API server:", err)
	}
	return code
}

// Start gives one test a server of its own, which stops with it.
func Start(t testing.TB) *rest.Config {
	t.Helper()
	Needed(t)
	env := &envtest.Environment{}
	config, err := Begin(env)
	if err != nil {
		t.Fatal("starting the API server: ", err)
	}
	t.Cleanup(func() {
		if err := env.Stop(); err != nil {
			t.Error("stopping the API server: ", err)
		}
	})
	return config
}
