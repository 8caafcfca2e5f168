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
	env     *envtest.Environment
	config  *rest.Config
	etcd    etcd
	dynamic dynamic.Interface
	served  *discovery.DiscoveryClient

	// blank is the content of the new server, defined its content with the definitions whose digest
	// is definitions.
	blank, defined state
	definitions    string
}

// state is the whole content of a server at one time.
type state struct {
	content content
	// kinds is the answer of the aggregated discovery.
	kinds string
}

// patience is how long poll waits.
const patience = time.Minute

func startServer() (*server, error) {
	s := &server{env: &envtest.Environment{ControlPlaneStopTimeout: time.Second}}
	var err error
	if s.config, err = apiserver.Begin(s.env); err != nil {
		return nil, err
	}
	s.config.QPS, s.config.WarningHandler = -1, rest.NoWarnings{}
	s.etcd = etcd{url: s.env.ControlPlane.Etcd.URL.String()}
	if s.dynamic, err = dynamic.NewForConfig(s.config); err == nil {
		s.served, err = discovery.NewDiscoveryClientForConfig(s.config)
	}
	if err == nil {
		err = s.begun()
	}
	if err == nil {
		s.blank, err = s.state()
	}
	if err != nil {
		s.stop()
		return nil, fmt.Errorf("a new API server: %w", err)
	}
	s.defined = s.blank
	return s, nil
}

// begun waits for the objects that a new server creates after it reports that it is ready.
func (s *server) begun() error {
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
	return wait.PollUntilContextTimeout(context.Background(), 5*time.Millisecond, patience, true, condition)
}

func (s *server) state() (state, error) {
	kinds, err := s.kinds(context.Background())
	if err != nil {
		return state{}, err
	}
	content, err := s.etcd.read(false)
	return state{content: content, kinds: kinds}, err
}

func (s *server) kinds(ctx context.Context) (string, error) {
	var out strings.Builder
	for _, path := range []string{"/api", "/apis"} {
		text, err := s.served.RESTClient().Get().AbsPath(path).SetHeader("Accept", discovery.AcceptV2).DoRaw(ctx)
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
	if s.definitions == digest {
		s.defined, err = s.restore(s.defined)
		return err
	}
	s.blank, err = s.restore(s.blank)
	s.defined, s.definitions = s.blank, ""
	return err
}

// define installs definitions on a server without any.
func (s *server) define(digest string, definitions []*apiextensionsv1.CustomResourceDefinition) error {
	if s.definitions == digest {
		return nil
	}
	if _, err := envtest.InstallCRDs(s.config, envtest.CRDInstallOptions{CRDs: definitions}); err != nil {
		return err
	}
	s.definitions = digest
	var err error
	s.defined, err = s.state()
	return err
}

// restore writes an earlier state to etcd, and waits until the server serves all of it.
func (s *server) restore(before state) (state, error) {
	var err error
	if before.content, err = s.etcd.restore(before.content); err != nil {
		return state{}, err
	}
	err = poll(func(ctx context.Context) (bool, error) {
		kinds, err := s.kinds(ctx)
		return kinds == before.kinds, err
	})
	if err != nil {
		return state{}, fmt.Errorf("it does not serve the kinds of before: %w", err)
	}
	// A list without a resource version waits for the cache of its kind, from which other requests
	// read without waiting.
	_, lists, err := s.served.ServerGroupsAndResources()
	if err != nil {
		return state{}, err
	}
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return state{}, err
		}
		for _, r := range list.APIResources {
			if strings.Contains(r.Name, "/") || !slices.Contains(r.Verbs, "list") {
				continue
			}
			if _, err := s.dynamic.Resource(version.WithResource(r.Name)).List(context.Background(), metav1.ListOptions{}); err != nil {
				return state{}, fmt.Errorf("listing %s: %w", r.Name, err)
			}
		}
	}
	return before, nil
}

func (s *server) answer() apiserver.Answer {
	return apiserver.Answer{Host: s.config.Host, CA: s.config.CAData, Certificate: s.config.CertData, Key: s.config.KeyData}
}

// stop ends both programs. Errors do not matter, as nobody needs their data.
func (s *server) stop() { _ = s.env.Stop() }
