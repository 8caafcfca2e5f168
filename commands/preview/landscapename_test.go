// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pergola-dev/pergola/schemas"
)

// TestLandscapeName: validate --from and diff report a changed name, because inventories are named
// after the landscape.
func TestLandscapeName(t *testing.T) {
	for name, test := range map[string]struct {
		old, new string
		told     bool
	}{
		"the same":              {"metadata: {name: x}\nspec: {}\n", "metadata: {name: x}\nspec: {}\n", false},
		"written otherwise":     {"metadata: {name: x}\nspec: {}\n", "metadata:\n  name: \"x\"\n", false},
		"a label more":          {"metadata: {name: x}\n", "metadata: {name: x, labels: {a: b}}\n", false},
		"another name":          {"metadata: {name: x}\n", "metadata: {name: \"y\"}\n", true},
		"a letter":              {"metadata: {name: local}\n", "metadata: {name: lokal}\n", true},
		"and a setting":         {"metadata: {name: x}\n", "metadata: {name: z}\nspec: {forceConflicts: true}\n", true},
		"no name before":        {"spec: {}\n", "metadata: {name: x}\n", false},
		"nothing that is known": {"spec: [\n", "metadata: {name: x}\n", false},
	} {
		t.Run(name, func(t *testing.T) {
			old, new := landscapeOf(t, test.old), landscapeOf(t, test.new)
			var found []schemas.Violation
			for _, v := range ProtectionFindings(old, new) {
				if v.Rule == ruleRenamed {
					found = append(found, v)
				}
			}
			if !test.told {
				assert.Empty(t, found)
				return
			}
			require.Len(t, found, 1)
			assert.Equal(t, schemas.SeverityWarning, found[0].Severity)
			assert.Equal(t, nameField, found[0].Field)
			assert.Equal(t, 3, found[0].Line)
			assert.Contains(t, found[0].Message, "stays with it: "+new.Config.Name+" starts without one")
			assert.Contains(t, SettingNotes(old, new)[0], "landscape.yaml: metadata.name: "+old.Config.Name+" → "+new.Config.Name)
		})
	}
}
