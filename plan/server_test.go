// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	clientrest "k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"

	"github.com/pergola-dev/pergola/hack/apiserver"
)

// config is the connection to the API server that checks the predictions.
var config *clientrest.Config

func TestMain(m *testing.M) {
	os.Exit(apiserver.Main(m, func(c *clientrest.Config) { config = c }))
}

// ServerConfig returns config for tests outside the package.
func ServerConfig() *clientrest.Config { return config }

// server is the API server of a test.
type server struct {
	testing.TB
	api   dynamic.Interface
	kinds func(schema.GroupVersionKind) (schema.GroupVersionResource, bool)
}

func newServer(t testing.TB) server {
	t.Helper()
	apiserver.SkipIfUnavailable(t)
	c := clientrest.CopyConfig(config)
	c.QPS, c.WarningHandler = -1, clientrest.NoWarnings{}
	api, err := dynamic.NewForConfig(c)
	require.NoError(t, err)
	d, err := discovery.NewDiscoveryClientForConfig(c)
	require.NoError(t, err)
	groups, err := restmapper.GetAPIGroupResources(d)
	require.NoError(t, err)
	mapper := restmapper.NewDiscoveryRESTMapper(groups)
	return server{t, api, func(gvk schema.GroupVersionKind) (schema.GroupVersionResource, bool) {
		mapping, err := mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
		require.NoError(t, err)
		return mapping.Resource, mapping.Scope.Name() == "namespace"
	}}
}

func (s server) resource(o *unstructured.Unstructured) dynamic.ResourceInterface {
	resource, namespaced := s.kinds(o.GroupVersionKind())
	if namespaced {
		return s.api.Resource(resource).Namespace(o.GetNamespace())
	}
	return s.api.Resource(resource)
}

func (s server) context() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	s.Cleanup(cancel)
	return ctx
}

// dryRun returns the object as the server would store it.
func (s server) dryRun(o *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	return s.resource(o).Create(s.context(), o, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}, FieldValidation: "Strict"})
}

// documents returns the objects of a file.
func documents(t testing.TB, file string) []*unstructured.Unstructured {
	t.Helper()
	raw, err := os.ReadFile(file)
	require.NoError(t, err)
	decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(raw), 4096)
	var out []*unstructured.Unstructured
	for {
		o := &unstructured.Unstructured{}
		err := decoder.Decode(o)
		if errors.Is(err, io.EOF) {
			return out
		}
		require.NoError(t, err)
		out = append(out, o)
	}
}
