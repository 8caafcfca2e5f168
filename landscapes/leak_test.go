package landscapes

import (
	"fmt"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pergola-dev/pergola/schemas"
)

const leakLandscape = "apiVersion: landscape.pergola.dev/v1alpha1\nkind: Landscape\nmetadata: {name: x}\nspec: %s\n"

// TestCUEErrorsQuoteNoValues: CUE's own messages do, and the value may be that of a Secret.
func TestCUEErrorsQuoteNoValues(t *testing.T) {
	for name, constraint := range map[string]string{
		"type": `"hunter2SECRET" & int`, "other value": `"hunter2SECRET" & "other"`, "bound": `"hunter2SECRET" & =~"^x"`,
	} {
		t.Run(name, func(t *testing.T) {
			tree := fstest.MapFS{
				"landscape.yaml": {Data: []byte(fmt.Sprintf(leakLandscape, "{}"))},
				"a.cue":          {Data: []byte(`s: {apiVersion: "v1", kind: "Secret", metadata: name: "a", stringData: {a: ` + constraint + `}}`)},
			}
			_, violations, err := LoadFS(t.Context(), tree, ".", Options{})
			require.NoError(t, err)
			require.NotEmpty(t, violations)
			assert.NotContains(t, fmt.Sprint(violations), "hunter2SECRET")
			assert.Contains(t, violations[0].String(), "a.cue:1:")
		})
	}
}

// TestLayersOfAWrongTypeAreNotLost: without its layers a landscape would lose what they declare.
func TestLayersOfAWrongTypeAreNotLost(t *testing.T) {
	for _, layers := range []string{"{layers: ../base}", "{layers: [5]}", "{layers: {a: ../base}}", "{layers: 5}"} {
		tree := fstest.MapFS{"live/landscape.yaml": {Data: []byte(fmt.Sprintf(leakLandscape, layers))}, "base/landscape.yaml": {Data: []byte(fmt.Sprintf(leakLandscape, "{}"))}}
		l, violations, err := LoadFS(t.Context(), tree, "live", Options{})
		require.NoError(t, err)
		found, err := l.Validate(t.Context(), schemas.Options{})
		require.NoError(t, err)
		assert.Contains(t, fmt.Sprint(append(violations, found...)), "spec.layers", layers)
	}
}
