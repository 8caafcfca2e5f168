// SPDX-License-Identifier: Apache-2.0

package custom_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pergola-dev/pergola/health/custom"
)

func TestExpressionVocabulary(t *testing.T) {
	v, err := custom.ExpressionVocabulary()
	require.NoError(t, err)
	for _, name := range []string{"size", "startsWith", "matches", "quantity", "isGreaterThan", "orValue", "duration", "isSemver", "format.named"} {
		assert.Contains(t, v.Functions, name)
	}
	for _, name := range []string{"in", "_==_", "_?._", "authorizer", "serviceAccount", "allowed", "subresource"} {
		assert.NotContains(t, v.Functions, name)
	}
	assert.Subset(t, v.Macros, []string{"all", "exists", "exists_one", "filter", "has", "map"})
	assert.IsIncreasing(t, v.Functions)
	assert.IsIncreasing(t, v.Macros)
}
