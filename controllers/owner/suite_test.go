// SPDX-License-Identifier: Apache-2.0

package owner

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/yaml"

	"github.com/pergola-dev/pergola/api/crds"
	resourcesv1alpha1 "github.com/pergola-dev/pergola/api/resources/v1alpha1"
	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/change"
	"github.com/pergola-dev/pergola/controllers/conventions"
	"github.com/pergola-dev/pergola/controllers/owner/changecounts"
	"github.com/pergola-dev/pergola/controllers/permit"
	"github.com/pergola-dev/pergola/hack/apiserver"
	"github.com/pergola-dev/pergola/render"
)

// server is the API server that the tests of this package share; each test has its own namespace
// and owner.
var server struct {
	config *rest.Config
	count  atomic.Int64
}

func TestMain(m *testing.M) {
	code := apiserver.Main(m, func(config *rest.Config) { server.config = config }, slices.Concat(crds.ByGroup(resourcesv1alpha1.SchemeGroupVersion.Group), crds.ByGroup("extensions.gardener.cloud"), crds.ByGroup("security.gardener.cloud"))...)
	if shootServer.end != nil {
		if err := shootServer.end(); err != nil {
			fmt.Fprintln(os.Stderr, "stopping the API server of the Shoots:", err)
		}
	}
	os.Exit(code)
}

// shootServer is another API server, for the Shoots of all tests; it starts on first use.
var shootServer struct {
	once   sync.Once
	config *rest.Config
	end    func() error
	err    error
}

func shootAPI(t testing.TB) *rest.Config {
	t.Helper()
	apiserver.SkipIfUnavailable(t)
	shootServer.once.Do(func() {
		shootServer.config, shootServer.end, shootServer.err = apiserver.Acquire()
	})
	require.NoError(t, shootServer.err)
	return shootServer.config
}

// testSite is an owner with its own namespace, and another client for it.
type testSite struct {
	testing.TB
	ctx context.Context
	ns  string
	api dynamic.Interface
	run *run
}

func newSite(t testing.TB) *testSite {
	t.Helper()
	apiserver.SkipIfUnavailable(t)
	s := &testSite{TB: t, ns: fmt.Sprintf("o%d-%d", os.Getpid(), server.count.Add(1))}
	var cancel context.CancelFunc
	s.ctx, cancel = context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	api, err := dynamic.NewForConfig(server.config)
	require.NoError(t, err)
	s.api = api
	for _, name := range []string{InventoryNamespace, s.ns} {
		_, err := s.resource("namespaces", "").Create(s.ctx, s.object("apiVersion: v1\nkind: Namespace\nmetadata: {name: "+name+"}"), metav1.CreateOptions{})
		if !apierrors.IsAlreadyExists(err) {
			require.NoError(t, err)
		}
	}
	local, err := conventions.NewCluster("local", server.config, apply.ClusterOptions{})
	require.NoError(t, err)
	t.Cleanup(local.Close)
	o := &ownerSession{Owner: Owner{Local: local, ObjectCluster: local, Input: render.Input{Owner: render.Owner{Kind: Seed, Name: s.ns, ControlPlaneNamespace: s.ns}}}}
	s.run = &run{owner: o, report: &Report{}, reconciler: &Reconciler{Engine: conventions.NewEngine(apply.Options{}), Clock: clock.RealClock{}, Gate: permit.DefaultGate()}}
	return s
}

func (s *testSite) resource(plural, namespace string) dynamic.ResourceInterface {
	gvr := schema.GroupVersionResource{Version: "v1", Resource: plural}
	if plural == "managedresources" {
		gvr = resourcesv1alpha1.SchemeGroupVersion.WithResource(plural)
	}
	if namespace == "" {
		return s.api.Resource(gvr)
	}
	return s.api.Resource(gvr).Namespace(namespace)
}

// object parses YAML, and replaces NS by the namespace of the test.
func (s *testSite) object(text string) *unstructured.Unstructured {
	s.Helper()
	o := &unstructured.Unstructured{}
	raw, err := yaml.YAMLToJSON([]byte(strings.ReplaceAll(text, "NS", s.ns)))
	require.NoError(s, err)
	require.NoError(s, o.UnmarshalJSON(raw))
	return o
}

func (s *testSite) configMap(name string) *unstructured.Unstructured {
	return s.object("{apiVersion: v1, kind: ConfigMap, metadata: {name: " + name + ", namespace: NS}, data: {a: b}}")
}

// bundle returns the bundle of the owner, delivered directly or by a ManagedResource.
func (s *testSite) bundle(direct bool, objects ...*unstructured.Unstructured) render.Bundle {
	b := render.Bundle{Name: "thing", Component: "seed/thing", Owner: s.run.owner.Input.Owner, Cluster: render.ClusterSeed, Namespace: s.ns,
		Delivery: render.Delivery{Direct: true}}
	if !direct {
		b.Delivery = render.Delivery{Class: "seed"}
	}
	for _, o := range objects {
		b.Objects = append(b.Objects, render.Object{Unstructured: o})
	}
	s.run.owner.state.bundles = []render.Bundle{b}
	return b
}

// apply applies a bundle and returns the actions by object, without ManagedResource and data
// Secrets.
func (s *testSite) apply(b render.Bundle) (map[string]apply.Action, error) {
	out := map[string]apply.Action{}
	s.run.reconciler.Hooks.OnObject = func(_, _ string, r apply.ObjectResult) {
		if !changecounts.IsDeliveryObject(r.Ref) {
			out[r.Ref.Name] = r.Action
		}
	}
	s.run.report, s.run.deletionsByCluster = &Report{}, nil
	_, err := s.run.applyBundle(s.ctx, b)
	return out, err
}

func (s *testSite) mustApply(b render.Bundle) map[string]apply.Action {
	s.Helper()
	out, err := s.apply(b)
	require.NoError(s, err)
	return out
}

// plan returns the actions of a dry run.
func (s *testSite) plan(b render.Bundle) map[string]change.Action {
	s.Helper()
	items, _, err := s.run.reconciler.planBundle(s.ctx, s.run.owner, b, &servingCache{})
	require.NoError(s, err)
	out := map[string]change.Action{}
	for _, item := range items {
		out[item.Object.Name] = item.Action
	}
	return out
}

// uids returns the UIDs of the existing objects, by resource and name.
func (s *testSite) uids(plurals ...string) map[string]types.UID {
	s.Helper()
	out := map[string]types.UID{}
	for _, plural := range plurals {
		list, err := s.resource(plural, s.ns).List(s.ctx, metav1.ListOptions{})
		require.NoError(s, err)
		for _, o := range list.Items {
			if o.GetName() != "kube-root-ca.crt" {
				out[plural+"/"+o.GetName()] = o.GetUID()
			}
		}
	}
	return out
}

func (s *testSite) inventoryObjects() []string {
	s.Helper()
	entries, err := s.run.reconciler.inventory(s.run.owner, s.run.owner.state.bundles[0]).Load(s.ctx)
	require.NoError(s, err)
	var out []string
	for _, e := range entries {
		out = append(out, e.Kind+"/"+e.Name)
	}
	return out
}

func (s *testSite) eventually(what string, ok func() bool) {
	s.Helper()
	require.Eventually(s, ok, 20*time.Second, 10*time.Millisecond, what)
}
