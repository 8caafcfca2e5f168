// SPDX-License-Identifier: Apache-2.0

package landscapes

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pergola-dev/pergola/schemas"
)

// TestSecretsDoNotMoveSilently: a Secret that the Garden no longer refers to does
// not move to the virtual garden silently.
func TestSecretsDoNotMoveSilently(t *testing.T) {
	garden := func(name string) string {
		return "apiVersion: operator.gardener.cloud/v1alpha1\nkind: Garden\nmetadata: {name: g}\nspec: {dns: {providers: [{name: p, type: t, secretRef: {name: " + name + "}}]}}\n"
	}
	const secret = "apiVersion: v1\nkind: Secret\nmetadata:\n  name: dns\n  namespace: garden\n"
	load := func(files map[string]string) *Landscape {
		files["landscape.yaml"] = withSpec("")
		l, _, err := LoadFS(t.Context(), tree(files), ".", Options{})
		require.NoError(t, err)
		return l
	}
	before := load(map[string]string{"garden.yaml": garden("dns"), "secret.yaml": secret})
	for name, test := range map[string]struct {
		files map[string]string
		want  bool
	}{
		"nothing changes":             {map[string]string{"garden.yaml": garden("dns"), "secret.yaml": secret}, false},
		"the reference goes":          {map[string]string{"garden.yaml": garden("other"), "secret.yaml": secret}, true},
		"the file goes with it":       {map[string]string{"garden.yaml": garden("other")}, false},
		"it is said where it belongs": {map[string]string{"garden.yaml": garden("other"), "secret.yaml": secret + "  annotations: {landscape.pergola.dev/cluster: virtual}\n"}, false},
		"the Garden goes":             {map[string]string{"secret.yaml": secret}, false},
	} {
		t.Run(name, func(t *testing.T) {
			found, err := load(test.files).ValidateChange(t.Context(), before, schemas.Options{})
			require.NoError(t, err)
			var texts []string
			for _, v := range found {
				if v.Rule == ruleClusterMove {
					texts = append(texts, v.String())
				}
			}
			if !test.want {
				assert.Empty(t, texts)
				return
			}
			require.Len(t, texts, 1)
			assert.Contains(t, texts[0], "secret.yaml:4:9: error: Secret garden/dns: metadata.annotations[landscape.pergola.dev/cluster]: no object of the runtime cluster refers to it")
		})
	}
}
