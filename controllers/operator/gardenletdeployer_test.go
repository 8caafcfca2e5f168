// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	seedmanagementv1alpha1 "github.com/pergola-dev/pergola/api/seedmanagement/v1alpha1"
	"github.com/pergola-dev/pergola/controllers/access"
)

// TestGardenletsAreDeployedWithoutLandscape: a Gardenlet in the virtual garden is reconciled
// without a Landscape.
func TestGardenletsAreDeployedWithoutLandscape(t *testing.T) {
	w := newTestEnv(t)
	if err := w.client.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: access.GardenNamespace}}); client.IgnoreAlreadyExists(err) != nil {
		require.NoError(t, err)
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: access.GardenNamespace, Name: access.SecretName}, StringData: map[string]string{access.KubeconfigKey: kubeconfig(t)}}
	w.create(secret)
	t.Cleanup(func() { require.NoError(t, w.client.Delete(context.Background(), secret)) })
	g := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"deployment": map[string]any{}}}}
	g.SetGroupVersionKind(seedmanagementv1alpha1.SchemeGroupVersion.WithKind("Gardenlet"))
	g.SetNamespace(access.GardenNamespace)
	g.SetName("another")
	w.create(g)
	t.Cleanup(func() { require.NoError(t, w.client.Delete(context.Background(), g)) })
	r := w.newRepository("beside")
	w.startOperator()
	w.createLandscape("beside", r)
	w.awaitReady("beside", "True")
	w.eventually("it says what is wrong", func() bool {
		require.NoError(t, w.client.Get(t.Context(), client.ObjectKeyFromObject(g), g))
		list, _, _ := unstructured.NestedSlice(g.Object, "status", "conditions")
		return len(list) == 1 && list[0].(map[string]any)["reason"] == "ConfigurationInvalid"
	})
}
