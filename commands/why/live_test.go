// SPDX-License-Identifier: Apache-2.0

package why

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/pergola-dev/pergola/change"
	"github.com/pergola-dev/pergola/components"
	"github.com/pergola-dev/pergola/controllers/owner"
	"github.com/pergola-dev/pergola/hack/apiserver"
	"github.com/pergola-dev/pergola/render"
)

func refOf(kind, name string) change.Ref { return change.Ref{Kind: kind, Name: name} }

var kindResources = map[string]schema.GroupVersionResource{
	"Deployment": {Group: "apps", Version: "v1", Resource: "deployments"}, "Namespace": {Version: "v1", Resource: "namespaces"},
	"ConfigMap": {Version: "v1", Resource: "configmaps"}, "Shoot": {Group: "core.gardener.cloud", Version: "v1beta1", Resource: "shoots"},
}

// TestCompareWithCluster compares with an object on an API server that we applied and others
// changed.
func TestCompareWithCluster(t *testing.T) {
	apiserver.SkipIfUnavailable(t)
	client, err := dynamic.NewForConfig(server.config)
	require.NoError(t, err)
	l := writeDemoLandscape(t, nil)
	const question = "Deployment garden/virtual-garden-kube-apiserver"
	onLive := func(o *Options) {
		o.MaxRenders, o.Owner = 1, "garden/local" // the test is not about the sources of the value
		o.Clusters = []string{"runtime"}
		o.ReadObject = func(ctx context.Context, _ string, ref change.Ref) (*unstructured.Unstructured, error) {
			found, err := client.Resource(kindResources[ref.Kind]).Namespace(ref.Namespace).Get(ctx, ref.Name, metav1.GetOptions{})
			if err != nil {
				return nil, nil
			}
			return found, nil
		}
	}
	a := explain(t, l, question+".spec.replicas", onLive)[0]
	assert.Equal(t, VerdictMissing, a.Live.Verdict)

	namespace := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": "garden"}}}
	_, err = client.Resource(kindResources["Namespace"]).Create(t.Context(), namespace, metav1.CreateOptions{})
	require.NoError(t, err)
	bundles, err := render.All(l, components.FS, func(o render.Owner) bool { return o.Kind == "garden" })
	require.NoError(t, err)
	var deployment *unstructured.Unstructured
	for _, b := range bundles {
		for _, o := range b.Objects {
			if o.GetKind() == "Deployment" && o.GetName() == "virtual-garden-kube-apiserver" {
				deployment = o.Unstructured
			}
		}
	}
	deployments := client.Resource(kindResources["Deployment"]).Namespace("garden")
	apply := func(manager string, object *unstructured.Unstructured) {
		t.Helper()
		_, err := deployments.Apply(t.Context(), object.GetName(), object, metav1.ApplyOptions{FieldManager: manager, Force: true})
		require.NoError(t, err)
	}
	apply(owner.FieldManager, deployment)

	a = explain(t, l, question+".spec.replicas", onLive)[0]
	assert.Equal(t, VerdictSame, a.Live.Verdict)
	require.Len(t, a.Live.Managers, 1)
	assert.Equal(t, "pergola", a.Live.Managers[0].Name)
	assert.True(t, a.Live.Managers[0].IsOurs)
	assert.NotNil(t, a.Live.Managers[0].Time)
	assert.Contains(t, answersText(t, []Answer{a}), "live     2: as in Git\n  owners   pergola (Apply, ")

	a = explain(t, l, question+".spec.template.spec", onLive)[0]
	assert.Equal(t, VerdictSame, a.Live.Verdict, "what the API server fills in is no difference")

	scaled := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apps/v1", "kind": "Deployment",
		"metadata": map[string]any{"name": deployment.GetName(), "namespace": "garden"}, "spec": map[string]any{"replicas": int64(5)}}}
	apply("autoscaler", scaled)
	a = explain(t, l, question+".spec.replicas", onLive)[0]
	assert.Equal(t, VerdictOtherManager, a.Live.Verdict)
	assert.Contains(t, a.Live.Message, "owned by autoscaler")
	assert.Equal(t, &Value{Value: int64(5)}, a.Live.Value)

	changed := deployment.DeepCopy()
	require.NoError(t, unstructured.SetNestedField(changed.Object, "other", "spec", "template", "spec", "priorityClassName"))
	unstructured.RemoveNestedField(changed.Object, "spec", "replicas")
	apply(owner.FieldManager, changed)
	a = explain(t, l, question+".spec.template.spec.priorityClassName", onLive)[0]
	assert.Equal(t, VerdictDiffers, a.Live.Verdict, "ours, and not as Git says")

	a = explain(t, l, question+".spec.progressDeadlineSeconds", onLive)[0]
	assert.Equal(t, VerdictUndeclared, a.Live.Verdict)
	assert.Equal(t, &Value{Value: int64(600)}, a.Live.Value)
	assert.Contains(t, a.Notes[0], "Git does not declare this field")
	_, err = Explain(t.Context(), l, question+".spec.progressDeadline", Options{Catalogue: components.FS})
	assert.Error(t, err)
}

func TestNoAccess(t *testing.T) {
	l := writeDemoLandscape(t, nil)
	fails := func(o *Options) {
		o.Clusters = []string{"runtime"}
		o.ReadObject = func(context.Context, string, change.Ref) (*unstructured.Unstructured, error) {
			return nil, errors.New("https://me:hunter2hunter2@api.example.org: refused")
		}
	}
	a := explain(t, l, "Garden local.spec.virtualCluster.kubernetes.version", fails)[0]
	assert.Equal(t, VerdictUnreachable, a.Live.Verdict)
	assert.NotContains(t, a.Live.Message, "hunter2")
	a = explain(t, l, "Shoot garden-local/local.spec.kubernetes.version", fails)[0]
	assert.Equal(t, "no access to cluster virtual: set KUBECONFIG, or give --kubeconfig PATH; --offline reads no cluster", a.Live.Message)
}

func TestOwnership(t *testing.T) {
	object := map[string]any{"spec": map[string]any{"containers": []any{
		map[string]any{"name": "b", "image": "y"}, map[string]any{"name": "a", "image": "x"}}, "tags": []any{"one"}, "args": []any{"x"}}}
	fields := map[string]any{"f:spec": map[string]any{
		"f:containers": map[string]any{`k:{"name":"a"}`: map[string]any{".": map[string]any{}, "f:image": map[string]any{}, "f:name": map[string]any{}}},
		"f:tags":       map[string]any{`v:"one"`: map[string]any{}}, "f:args": map[string]any{},
	}}
	for path, want := range map[string][2]bool{
		"spec.containers[a].image": {true, false}, "spec.containers[b].image": {false, false}, "spec.containers": {false, true},
		"spec.tags[0]": {true, false}, "spec.args[0]": {true, false}, "spec": {false, true},
	} {
		list, _, err := followPath(object, path)
		require.NoError(t, err)
		owns, part := ownership(fields, object, list)
		assert.Equal(t, want, [2]bool{owns, part}, path)
	}
}
