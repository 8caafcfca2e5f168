// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"fmt"
	"os"
	"strings"
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
	"sigs.k8s.io/yaml"

	"github.com/pergola-dev/pergola/hack/apiserver"
)

// server is the API server that the integration tests of this package share; each test has its own
// namespace.
var server struct {
	config *rest.Config
	count  atomic.Int64
}

func TestMain(m *testing.M) {
	os.Exit(apiserver.Main(m, func(config *rest.Config) { server.config = config }))
}

// fixture is a test's own part of the API server.
type fixture struct {
	testing.TB
	ctx   context.Context
	ns    string
	c     *Cluster
	e     *Engine
	inv   Inventory
	api   dynamic.Interface // someone else's client: its requests are not counted
	other string            // the field manager of somebody else
}

func newFixture(t testing.TB) *fixture {
	t.Helper()
	apiserver.SkipIfUnavailable(t)
	f := &fixture{TB: t, ns: fmt.Sprintf("t%d-%d", os.Getpid(), server.count.Add(1)), e: newEngine(Options{}), other: "somebody"}
	var cancel context.CancelFunc
	f.ctx, cancel = context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	f.c = f.cluster()
	f.inv = NewConfigMapInventory(f.c, f.ns, "inventory", nil)
	other := rest.CopyConfig(server.config)
	other.UserAgent, other.QPS, other.WarningHandler = "somebody", -1, rest.NoWarnings{}
	api, err := dynamic.NewForConfig(other)
	require.NoError(t, err)
	f.api = api
	f.create(f.object(`{apiVersion: v1, kind: Namespace, metadata: {name: NS}}`))
	t.Cleanup(f.releaseServices)
	return f
}

// releaseServices deletes all Services of the test: their addresses and node ports belong to the
// whole server, and the next test may name them.
func (f *fixture) releaseServices() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	services := f.api.Resource(schema.GroupVersionResource{Version: "v1", Resource: "services"}).Namespace(f.ns)
	list, err := services.List(ctx, metav1.ListOptions{})
	require.NoError(f, err)
	for i := range list.Items {
		name := list.Items[i].GetName()
		_, err := services.Patch(ctx, name, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
		if err == nil {
			err = services.Delete(ctx, name, deleteNow)
		}
		if !apierrors.IsNotFound(err) {
			require.NoError(f, err)
		}
	}
}

// cluster opens a new connection, as after a restart of the process.
func (f *fixture) cluster() *Cluster {
	c, err := newCluster("test", server.config, ClusterOptions{})
	require.NoError(f, err)
	f.Cleanup(c.Close)
	return c
}

// object parses YAML, in which NS stands for the namespace of the test.
func (f *fixture) object(text string) *unstructured.Unstructured { return parse(f, f.ns, text) }

func parse(t testing.TB, ns, text string) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{}
	raw, err := yaml.YAMLToJSON([]byte(strings.ReplaceAll(text, "NS", ns)))
	require.NoError(t, err)
	require.NoError(t, o.UnmarshalJSON(raw))
	return o
}

func (f *fixture) configMap(name, value string) *unstructured.Unstructured {
	return f.object(fmt.Sprintf(`{apiVersion: v1, kind: ConfigMap, metadata: {name: %s, namespace: NS}, data: {key: %q}}`, name, value))
}

func (f *fixture) deployment(name string, replicas int) *unstructured.Unstructured {
	return f.object(fmt.Sprintf(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: %[1]s, namespace: NS}
spec:
  replicas: %[2]d
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata: {labels: {app: %[1]s}}
    spec: {containers: [{name: app, image: "registry.k8s.io/pause:3.10", ports: [{containerPort: 80}], resources: {requests: {cpu: "0.5"}}}]}
`, name, replicas))
}

func (f *fixture) set(objects ...*unstructured.Unstructured) Set {
	return Set{Name: f.ns + "/set", FieldManager: "pergola", Force: true, Objects: objects}
}

func (f *fixture) apply(s Set) (*Result, error) {
	return f.e.Apply(f.ctx, f.c, s, f.inv, ApplyOptions{DeleteTimeout: 2 * time.Second})
}

func (f *fixture) mustApply(s Set) *Result {
	f.Helper()
	result, err := f.apply(s)
	require.NoError(f, err)
	return result
}

// requests counts the requests that the engine sends in do. Watches are omitted: they begin some
// time after their list.
func (f *fixture) requests(do func()) RequestCounts {
	before := f.c.Requests()
	do()
	out := f.c.Requests().Sub(before)
	delete(out, "watch")
	return out
}

func (f *fixture) resource(o *unstructured.Unstructured) dynamic.ResourceInterface {
	mapping, err := f.c.Mapping(f.ctx, o.GroupVersionKind())
	require.NoError(f, err)
	return f.api.Resource(mapping.Resource).Namespace(o.GetNamespace())
}

func (f *fixture) create(o *unstructured.Unstructured) *unstructured.Unstructured {
	f.Helper()
	out, err := f.resource(o).Create(f.ctx, o, metav1.CreateOptions{FieldManager: "somebody"})
	require.NoError(f, err)
	return out
}

func (f *fixture) get(o *unstructured.Unstructured) *unstructured.Unstructured {
	f.Helper()
	out, err := f.resource(o).Get(f.ctx, o.GetName(), metav1.GetOptions{})
	require.NoError(f, err)
	return out
}

func (f *fixture) exists(o *unstructured.Unstructured) bool {
	_, err := f.resource(o).Get(f.ctx, o.GetName(), metav1.GetOptions{})
	return err == nil
}

// patch sends a JSON merge patch in the name of a manager and waits for it in the live cache.
func (f *fixture) patch(o *unstructured.Unstructured, manager, body string, subresource ...string) {
	f.Helper()
	out, err := f.resource(o).Patch(f.ctx, o.GetName(), types.MergePatchType, []byte(body), metav1.PatchOptions{FieldManager: manager}, subresource...)
	require.NoError(f, err)
	if len(subresource) > 0 {
		return
	}
	f.eventually("the cache sees the change", func() bool {
		live, err := f.c.Get(f.ctx, RefOf(o))
		return err == nil && live.GetResourceVersion() == out.GetResourceVersion()
	})
}

func (f *fixture) eventually(what string, ok func() bool) {
	f.Helper()
	require.Eventually(f, ok, 20*time.Second, 10*time.Millisecond, what)
}

func actions(r *Result) map[string]Action {
	out := map[string]Action{}
	for _, o := range r.Objects {
		out[o.Ref.Kind+"/"+o.Ref.Name] = o.Action
	}
	return out
}

func nested(o *unstructured.Unstructured, path ...string) any {
	v, _, _ := unstructured.NestedFieldNoCopy(o.Object, path...)
	return v
}

func patchAs(manager string) metav1.PatchOptions { return metav1.PatchOptions{FieldManager: manager} }
