// SPDX-License-Identifier: Apache-2.0

package landscapes

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pergola-dev/pergola/schemas"
)

// TestRemovedDeclarationsHaveNoLine: a finding about a removed declaration names only its file. A
// line of the old file could point to another object or to nothing.
func TestRemovedDeclarationsHaveNoLine(t *testing.T) {
	const project = "# The project.\napiVersion: core.gardener.cloud/v1beta1\nkind: Project\nmetadata: {name: old}\nspec: {namespace: garden-old}\n"
	object := func(apiVersion, kind, namespace string) string {
		return fmt.Sprintf("# One object.\napiVersion: %s\nkind: %s\nmetadata:\n  name: old\n  namespace: %q\n", apiVersion, kind, namespace)
	}
	for name, test := range map[string]struct{ file, before, after string }{
		"Project":                {"old.yaml", project, ""},
		"Shoot":                  {"shoots/old.yaml", object("core.gardener.cloud/v1beta1", "Shoot", "garden-old"), ""},
		"Seed":                   {"seeds/old.yml", object("core.gardener.cloud/v1beta1", "Seed", ""), ""},
		"ShootState":             {"state.yaml", object("core.gardener.cloud/v1beta1", "ShootState", "garden-old"), ""},
		"Worker":                 {"worker.yaml", object("extensions.gardener.cloud/v1alpha1", "Worker", "shoot--old--old"), ""},
		"Infrastructure as JSON": {"old.json", "{\n\"apiVersion\": \"extensions.gardener.cloud/v1alpha1\", \"kind\": \"Infrastructure\",\n\"metadata\": {\"name\": \"old\", \"namespace\": \"shoot--old--old\"}}", ""},
		"one of a file":          {"two.yaml", namespace("stays") + "---\n" + project, namespace("stays")},
	} {
		t.Run(name, func(t *testing.T) {
			load := func(text string) *Landscape {
				files := map[string]string{"landscape.yaml": bareConfig}
				if text != "" {
					files[test.file] = text
				}
				l, _, err := LoadFS(t.Context(), tree(files), ".", Options{})
				require.NoError(t, err)
				return l
			}
			found, err := load(test.after).ValidateChange(t.Context(), load(test.before), schemas.Options{})
			require.NoError(t, err)
			require.NotEmpty(t, found)
			for _, v := range found {
				assert.Equal(t, schemas.RuleDeletionConfirm, v.Rule, v)
				assert.Equal(t, schemas.Position{File: test.file}, schemas.Position{File: v.File, Line: v.Line, Column: v.Column}, v)
			}
		})
	}
}
