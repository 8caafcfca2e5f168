// SPDX-License-Identifier: Apache-2.0

package render

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestUntypedListItems: only the list has the type of its items.
func TestUntypedListItems(t *testing.T) {
	objects, err := DecodeYAML("x", []byte(`{"apiVersion": "apps/v1", "kind": "DeploymentList", "items": [{"metadata": {"name": "a"}}, {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "b"}}]}`))
	require.NoError(t, err)
	require.Len(t, objects, 2)
	assert.Equal(t, "apps/v1 Deployment a", objects[0].GetAPIVersion()+" "+objects[0].GetKind()+" "+objects[0].GetName())
	assert.Equal(t, "v1 Pod b", objects[1].GetAPIVersion()+" "+objects[1].GetKind()+" "+objects[1].GetName())
}
