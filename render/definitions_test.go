// SPDX-License-Identifier: Apache-2.0

package render

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	"k8s.io/apimachinery/pkg/runtime"
)

// TestDefinitionsAreAccepted: an API server accepts the CustomResourceDefinitions of the catalogue,
// including defaults.
func TestDefinitionsAreAccepted(t *testing.T) {
	problems := func(t *testing.T, object map[string]any) string {
		t.Helper()
		crd := &apiextensionsv1.CustomResourceDefinition{}
		require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(object, crd))
		apiextensionsv1.SetDefaults_CustomResourceDefinition(crd)
		apiextensionsv1.SetDefaults_CustomResourceDefinitionSpec(&crd.Spec)
		internal := &apiextensions.CustomResourceDefinition{}
		require.NoError(t, apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(crd, internal, nil))
		if errs := validation.ValidateCustomResourceDefinition(t.Context(), internal); len(errs) > 0 {
			return errs.ToAggregate().Error()
		}
		return ""
	}
	seen := map[string]map[string]any{}
	for _, v := range variants {
		for _, b := range renderedVariants[v.name](t).bundles() {
			for _, o := range b.Objects {
				if o.GetKind() == "CustomResourceDefinition" && seen[o.GetName()] == nil {
					seen[o.GetName()] = o.DeepCopy().Object
					assert.Empty(t, problems(t, o.DeepCopy().Object), describeObject(b, o))
				}
			}
		}
	}
	require.NotEmpty(t, seen)
	for _, broken := range seen {
		broken["spec"].(map[string]any)["names"].(map[string]any)["plural"] = "other"
		assert.NotEmpty(t, problems(t, broken), "a definition under the wrong name is refused")
		break
	}
}
