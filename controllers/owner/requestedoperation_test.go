// SPDX-License-Identifier: Apache-2.0

package owner

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pergola-dev/pergola/render"
)

// TestRequestorOfOperation checks that the requestor of an operation is the program that has set
// the annotation, as the API server knows it.
func TestRequestorOfOperation(t *testing.T) {
	s := newSite(t)
	o := &ownerSession{Owner: Owner{Input: render.Input{Owner: render.Owner{Kind: Garden, Name: "local"}}}}
	objects := s.resource("configmaps", s.ns)
	_, err := objects.Create(s.ctx, s.configMap("garden"), metav1.CreateOptions{FieldManager: "pergola"})
	require.NoError(t, err)
	live, err := objects.Patch(s.ctx, "garden", types.MergePatchType, []byte(`{"metadata": {"annotations": {"gardener.cloud/operation": "rotate-ca-start;rotate-observability-credentials"}}}`), metav1.PatchOptions{FieldManager: "kubectl-annotate"})
	require.NoError(t, err)

	taken := newRequestedOperation(o, live, live.GetAnnotations()[annotationOperation])
	require.NotNil(t, taken)
	assert.Equal(t, "started: rotate-ca-start, rotate-observability-credentials of garden local, requested by kubectl-annotate", taken.String())
	assert.Nil(t, newRequestedOperation(o, live, ""), "nobody has asked")
	live.SetManagedFields(nil)
	assert.Equal(t, "started: rotate-ca-start of garden local", newRequestedOperation(o, live, "rotate-ca-start").String(), "who it was is not known")
}
