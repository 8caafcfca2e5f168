// SPDX-License-Identifier: Apache-2.0

package managedresource

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	resourcesv1alpha1 "github.com/pergola-dev/pergola/api/resources/v1alpha1"
	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/change"
	"github.com/pergola-dev/pergola/controllers/conventions"
)

// TestLargeInventory: an inventory omits dispensable data before it is too large for an object, and
// fails if it still is.
func TestLargeInventory(t *testing.T) {
	cluster, err := conventions.NewCluster("seed", &rest.Config{Host: "localhost:1"}, apply.ClusterOptions{})
	require.NoError(t, err)
	defer cluster.Close()
	r := &Reconciler{Source: cluster, Target: cluster}
	inventory := &statusInventory{reconciler: r, managedResource: &resourcesv1alpha1.ManagedResource{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "large"}}}
	entries := func(n int) []apply.Entry {
		out := make([]apply.Entry, n)
		for i := range out {
			out[i] = apply.Entry{Ref: apply.Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: "garden", Name: fmt.Sprintf("an-object-with-number-%05d", i)},
				Labels: map[string]string{resourcesv1alpha1.ManagedBy: "gardener", "app": "some-application"}, AppliedDigest: strings.Repeat("a", 32), LiveDigest: strings.Repeat("b", 32),
				Annotations: map[string]string{resourcesv1alpha1.Origin: "garden/large", resourcesv1alpha1.Description: "a text"}}
		}
		out[0].Annotations[resourcesv1alpha1.Origin] = "garden/before"
		return out
	}
	few, err := inventory.objectReferences(entries(1000))
	require.NoError(t, err)
	assert.Equal(t, map[string]string{resourcesv1alpha1.ManagedBy: "gardener", "app": "some-application"}, few[1].Labels)
	assert.Empty(t, few[1].Annotations, "what is the same for each object is left out")
	assert.Equal(t, map[string]string{resourcesv1alpha1.Origin: "garden/before"}, few[0].Annotations)

	many, err := inventory.objectReferences(entries(5000))
	require.NoError(t, err)
	assert.Empty(t, many[1].Labels)
	assert.Equal(t, map[string]string{resourcesv1alpha1.Origin: "garden/before"}, many[0].Annotations, "whose it was decides whether it may be deleted")

	_, err = inventory.objectReferences(entries(9000))
	require.ErrorContains(t, err, "the inventory of its 9000 objects needs")
	assert.ErrorContains(t, err, "at most 1280 KiB")
	assert.Equal(t, apply.ReasonInvalid, apply.ReasonOf(err))
}

// TestHeldReasonAsText: an object that an old version of Pergola held, with a text, stays held.
func TestHeldReasonAsText(t *testing.T) {
	r := &Reconciler{}
	mr := &resourcesv1alpha1.ManagedResource{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "a"}}
	for _, name := range []string{"one", "two"} {
		mr.Status.Resources = append(mr.Status.Resources, resourcesv1alpha1.ObjectReference{ObjectReference: corev1.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Name: name}})
	}
	mr.Status.Resources[0].Held = "too many"
	entries, err := r.newInventory(mr).Load(t.Context())
	require.NoError(t, err)
	assert.Equal(t, map[change.Ref]change.Reason{entries[0].Ref: {Detail: "too many"}}, apply.HeldReasons(entries))
	inventory := r.newInventory(mr)
	require.NoError(t, inventory.End(t.Context(), entries))
	assert.Empty(t, mr.Status.Resources[0].Held)
	assert.Equal(t, "too many", mr.Status.Resources[0].HeldFor.Detail)
}
