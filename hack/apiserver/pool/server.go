// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/pergola-dev/pergola/hack/apiserver"
)

// server is an API server with its etcd.
type server struct {
	env             *envtest.Environment
	config          *rest.Config
	etcd            etcd
	dynamic         dynamic.Interface
	discoveryClient *discovery.DiscoveryClient

	// initialState is the content of the new server; definedState is its content with the
	// definitions of definitionsDigest.
	initialState, definedState serverState
	definitionsDigest          string
}

// serverState is the whole content of a server at one time.
type serverState struct {
	content etcdContent
	// discovery is the answer of the aggregated discovery.
	discovery string
}

// pollTimeout is how long poll waits.
const pollTimeout = time.Minute

func startServer() (*server, error) {
	s := &server{env: &envtest.Environment{ControlPlaneStopTimeout: time.Second}}
	var err error
	if s.config, err = apiserver.StartEnvironment(s.env); err != nil {
		return nil, err
	}
	s.config.QPS, s.config.WarningHandler = -1, rest.NoWarnings{}
	s.etcd = etcd{url: s.env.ControlPlane.Etcd.URL.String()}
	if s.dynamic, err = dynamic.NewForConfig(s.config); err == nil {
		s.discoveryClient, err = discovery.NewDiscoveryClientForConfig(s.config)
	}
	if err == nil {
		err = s.waitUntilInitialized()
	}
	if err == nil {
		s.initialState, err = s.readState()
	}
	if err != nil {
		s.stop()
		return nil, fmt.Errorf("a new API server: %w", err)
	}
	s.definedState = s.initialState
	return s, nil
}

// waitUntilInitialized waits for the objects that a new server creates after it reports that it is
// ready.
func (s *server) waitUntilInitialized() error {
	namespaces := s.dynamic.Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"})
	services := s.dynamic.Resource(schema.GroupVersionResource{Version: "v1", Resource: "services"}).Namespace(metav1.NamespaceDefault)
	return poll(func(ctx context.Context) (bool, error) {
		for _, name := range []string{metav1.NamespaceDefault, metav1.NamespaceSystem, metav1.NamespacePublic, "kube-node-lease"} {
			if _, err := namespaces.Get(ctx, name, metav1.GetOptions{}); err != nil {
				return false, ignoreNotFound(err)
			}
		}
		_, err := services.Get(ctx, "kubernetes", metav1.GetOptions{})
		return err == nil, ignoreNotFound(err)
	})
}

func ignoreNotFound(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

func poll(condition wait.ConditionWithContextFunc) error {
	return wait.PollUntilContextTimeout(context.Background(), 5*time.Millisecond, pollTimeout, true, condition)
}

func (s *server) readState() (serverState, error) {
	kinds, err := s.readDiscovery(context.Background())
	if err != nil {
		return serverState{}, err
	}
	content, err := s.etcd.read(false)
	return serverState{content: content, discovery: kinds}, err
}

func (s *server) readDiscovery(ctx context.Context) (string, error) {
	var out strings.Builder
	for _, path := range []string{"/api", "/apis"} {
		text, err := s.discoveryClient.RESTClient().Get().AbsPath(path).SetHeader("Accept", discovery.AcceptV2).DoRaw(ctx)
		if err != nil {
			return "", fmt.Errorf("reading the kinds that are served: %w", err)
		}
		out.Write(text)
	}
	return out.String(), nil
}

// reset restores the content of a used server: with its definitions if digest is theirs, else
// without any.
func (s *server) reset(digest string) error {
	var err error
	if s.definitionsDigest == digest {
		s.definedState, err = s.restore(s.definedState)
		return err
	}
	s.initialState, err = s.restore(s.initialState)
	s.definedState, s.definitionsDigest = s.initialState, ""
	return err
}

// installDefinitions installs definitions on a server without any.
func (s *server) installDefinitions(digest string, definitions []*apiextensionsv1.CustomResourceDefinition) error {
	if s.definitionsDigest == digest {
		return nil
	}
	if _, err := envtest.InstallCRDs(s.config, envtest.CRDInstallOptions{CRDs: definitions}); err != nil {
		return err
	}
	s.definitionsDigest = digest
	var err error
	s.definedState, err = s.readState()
	return err
}

// restore writes an earlier state to etcd, and waits until the server serves all of it.
func (s *server) restore(before serverState) (serverState, error) {
	var err error
	if before.content, err = s.etcd.restore(before.content); err != nil {
		return serverState{}, err
	}
	err = poll(func(ctx context.Context) (bool, error) {
		kinds, err := s.readDiscovery(ctx)
		return kinds == before.discovery, err
	})
	if err != nil {
		return serverState{}, fmt.Errorf("it no longer serves the previous kinds: %w", err)
	}
	// A list without a resource version waits for the cache of its kind, from which other requests
	// read without waiting.
	_, lists, err := s.discoveryClient.ServerGroupsAndResources()
	if err != nil {
		return serverState{}, err
	}
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return serverState{}, err
		}
		for _, r := range list.APIResources {
			if strings.Contains(r.Name, "/") || !slices.Contains(r.Verbs, "list") {
				continue
			}
			if _, err := s.dynamic.Resource(version.WithResource(r.Name)).List(context.Background(), metav1.ListOptions{}); err != nil {
				return serverState{}, fmt.Errorf("listing %s: %w", r.Name, err)
			}
		}
	}
	return before, nil
}

func (s *server) leaseResponse() apiserver.Response {
	return apiserver.Response{Host: s.config.Host, CA: s.config.CAData, Certificate: s.config.CertData, Key: s.config.KeyData}
}

// stop ends both programs. Errors do not matter, because no process needs their data.
func (s *server) stop() { _ = s.env.Stop() }
