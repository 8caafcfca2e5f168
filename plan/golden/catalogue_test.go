// SPDX-License-Identifier: Apache-2.0

package golden

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pergola-dev/pergola/components"
)

// TestCatalogue: every component of Pergola's own catalogue has cases, and their records are
// current.
func TestCatalogue(t *testing.T) {
	report, err := Run(t.Context(), components.FS, nil)
	require.NoError(t, err)
	var out bytes.Buffer
	require.NoError(t, Print(&out, report))
	assert.True(t, report.IsCurrent(), "run pergola golden --components --catalogue components --update and review what changed:\n%s", out.String())
	assert.Empty(t, report.Summary.WithoutCases)
	assert.GreaterOrEqual(t, report.Summary.Cases, report.Summary.Components)
}
