// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"
)

func TestManagedFieldsOfAVersionThatIsGone(t *testing.T) {
	f := newFixture(t)
	crd := f.widgets()
	f.mustApply(f.set(crd, f.widget("w")))
	// An API version that is no longer served left this entry.
	_, err := f.resource(f.widget("w")).Patch(f.ctx, "w", types.JSONPatchType,
		[]byte(`[{"op":"replace","path":"/metadata/managedFields/0/apiVersion","value":"`+f.ns+`.example.com/v1beta1"}]`), patchAs("somebody"))
	require.NoError(t, err)
	bigger := f.widget("w")
	bigger.Object["spec"] = map[string]any{"size": int64(2)}
	f.mustApply(f.set(crd, bigger))
	assert.EqualValues(t, 2, nested(f.get(bigger), "spec", "size"))
}
