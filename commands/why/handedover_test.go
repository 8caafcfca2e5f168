// SPDX-License-Identifier: Apache-2.0

package why

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
	"github.com/pergola-dev/pergola/change"
	"github.com/pergola-dev/pergola/controllers/landscape"
	"github.com/pergola-dev/pergola/hack/apiserver"
)

// TestHandedOver: a field that a controller owns by design is neither drift nor a conflict.
func TestHandedOver(t *testing.T) {
	apiserver.SkipIfUnavailable(t)
	client, err := dynamic.NewForConfig(server.config)
	require.NoError(t, err)
	l := writeDemoLandscape(t, nil)
	const question, controller = "Shoot garden-local/local", "gardener-controller-manager"
	onLive := func(o *Options) {
		o.Clusters = []string{landscape.Virtual}
		o.ReadObject = func(ctx context.Context, _ string, ref change.Ref) (*unstructured.Unstructured, error) {
			return client.Resource(kindResources[ref.Kind]).Namespace(ref.Namespace).Get(ctx, ref.Name, metav1.GetOptions{})
		}
	}
	namespace := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": "garden-local"}}}
	_, err = client.Resource(kindResources["Namespace"]).Create(t.Context(), namespace, metav1.CreateOptions{})
	require.NoError(t, err)
	declared, ok := l.Find(gardencorev1beta1.SchemeGroupVersion.WithKind("Shoot").GroupKind(), "garden-local", "local")
	require.True(t, ok)
	shoots := client.Resource(kindResources["Shoot"]).Namespace("garden-local")
	_, err = shoots.Apply(t.Context(), "local", declared.Object(), metav1.ApplyOptions{FieldManager: landscape.FieldManager})
	require.NoError(t, err)
	change := func(manager string, mutate func(spec map[string]any)) {
		t.Helper()
		live, err := shoots.Get(t.Context(), "local", metav1.GetOptions{})
		require.NoError(t, err)
		mutate(live.Object["spec"].(map[string]any))
		_, err = shoots.Update(t.Context(), live, metav1.UpdateOptions{FieldManager: manager})
		require.NoError(t, err)
	}
	verdicts := func(want map[string]string) {
		t.Helper()
		for field, verdict := range want {
			if a := explain(t, l, question+field, onLive)[0]; assert.NotNil(t, a.Live, field) {
				assert.Equal(t, verdict, a.Live.Verdict, "%s: %s", field, a.Live.Message)
			}
		}
	}
	const image = ".spec.provider.workers[local].machine.image"
	verdicts(map[string]string{".spec.kubernetes.version": VerdictSame, image: VerdictSame, ".spec.kubernetes": VerdictSame, "": VerdictSame})

	change(controller, func(spec map[string]any) {
		spec["kubernetes"].(map[string]any)["version"] = "1.34.2"
		worker := spec["provider"].(map[string]any)["workers"].([]any)[0].(map[string]any)
		worker["machine"].(map[string]any)["image"].(map[string]any)["version"] = "1.2.0"
	})
	verdicts(map[string]string{
		".spec.kubernetes.version": VerdictHandedOver, image + ".version": VerdictHandedOver, image: VerdictHandedOver, image + ".name": VerdictSame, ".spec.kubernetes": VerdictHandedOver,
		".spec.kubernetes.kubelet": VerdictSame, ".spec.purpose": VerdictSame, "": VerdictSame,
	})
	a := explain(t, l, question+".spec.kubernetes.version", onLive)[0]
	assert.Equal(t, "handed over to "+controller+": maintenance raised it (spec.maintenance.autoUpdate) (docs/reference/field-ownership.md says when Git's value applies again)", a.Live.Message)
	assert.Equal(t, &Value{Value: "1.34.2"}, a.Live.Value)
	require.Len(t, a.Live.HandedOver, 1)
	assert.Equal(t, landscape.Virtual, a.Live.HandedOver[0].Cluster)
	assert.Contains(t, answersText(t, []Answer{a}), "\n  left     Shoot garden-local/local on virtual: spec.kubernetes.version is 1.34.2, Git has 1.34.1, set by "+controller)
	raw, err := json.Marshal(a)
	require.NoError(t, err)
	assert.Contains(t, string(raw), `"verdict":"handedOver"`)
	assert.Len(t, explain(t, l, question, onLive)[0].Live.HandedOver, 2, "all of the object")

	// Another manager changes fields beside the handed-over ones.
	change("kubectl-edit", func(spec map[string]any) {
		spec["kubernetes"].(map[string]any)["kubeAPIServer"].(map[string]any)["eventTTL"] = "9h"
		spec["kubernetes"].(map[string]any)["version"] = "1.34.3"
	})
	verdicts(map[string]string{".spec.kubernetes.version": VerdictOtherManager, ".spec.kubernetes.kubeAPIServer.eventTTL": VerdictOtherManager, ".spec.kubernetes": VerdictDiffers, image: VerdictHandedOver})
}

// TestHandedOverRemoval: maintenance removes fields that the new version does not have.
func TestHandedOverRemoval(t *testing.T) {
	l := writeDemoLandscape(t, nil)
	declared, ok := l.Find(gardencorev1beta1.SchemeGroupVersion.WithKind("Shoot").GroupKind(), "garden-local", "local")
	require.True(t, ok)
	object := declared.Object()
	require.NoError(t, unstructured.SetNestedField(object.Object, "2m0s", "spec", "kubernetes", "kubeControllerManager", "podEvictionTimeout"))
	live := object.DeepCopy()
	unstructured.RemoveNestedField(live.Object, "spec", "kubernetes", "kubeControllerManager")
	require.NoError(t, unstructured.SetNestedField(live.Object, "1.35.0", "spec", "kubernetes", "version"))
	live.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "gardener-controller-manager", Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "core.gardener.cloud/v1beta1",
		FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:kubernetes":{"f:version":{}}}}`)}})
	e := &explainer{landscape: l, opts: Options{Clusters: []string{landscape.Virtual}, ReadObject: func(context.Context, string, change.Ref) (*unstructured.Unstructured, error) { return live, nil }}}
	for path, want := range map[string]string{
		"spec.kubernetes.kubeControllerManager.podEvictionTimeout": VerdictHandedOver, "spec.kubernetes.kubeControllerManager": VerdictHandedOver, "spec.kubernetes": VerdictHandedOver,
	} {
		list, value, err := followPath(object.Object, path)
		require.NoError(t, err)
		a := Answer{Manager: landscape.FieldManager}
		e.addLive(t.Context(), &a, objectMatch{cluster: landscape.Virtual, object: object, declaration: declared, path: path}, list, value)
		assert.Equal(t, want, a.Live.Verdict, "%s: %s", path, a.Live.Message)
	}
	unstructured.RemoveNestedField(live.Object, "spec", "purpose")
	list, value, err := followPath(object.Object, "spec.purpose")
	require.NoError(t, err)
	a := Answer{}
	e.addLive(t.Context(), &a, objectMatch{cluster: landscape.Virtual, object: object, declaration: declared, path: "spec.purpose"}, list, value)
	assert.Equal(t, VerdictMissing, a.Live.Verdict)
}
