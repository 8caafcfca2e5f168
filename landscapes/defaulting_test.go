// SPDX-License-Identifier: Apache-2.0

package landscapes

import (
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pergola-dev/pergola/schemas"
)

// TestRulesApplyToDefaults: rules apply to networks from the Seed and to a version from the
// profile as to declared values.
func TestRulesApplyToDefaults(t *testing.T) {
	const shoot = "projects/local/shoot.yaml"
	for _, c := range []struct{ name, nodes, version, want string }{
		{"all well", "10.10.0.0/16", "\"1.34\"", ""},
		{"networks that overlap", "100.96.0.0/16", "1.34.1", "overlaps with 100.96.0.0/11 of spec.networking.pods; the API fills in unset fields (spec.networking.pods is 100.96.0.0/11: the range that Seed local has for Shoots"},
		{"no version like that", "10.10.0.0/16", "\"1.2\"", "spec.kubernetes.version"},
	} {
		t.Run(c.name, func(t *testing.T) {
			files := readMemoryFS(t, "local")
			text := string(files[shoot].Data)
			for before, after := range map[string]string{
				"    pods: 100.96.0.0/11\n": "", "    services: 100.72.0.0/13\n": "", "nodes: 10.10.0.0/16": "nodes: " + c.nodes, "version: 1.34.1": "version: " + c.version,
			} {
				require.Contains(t, text, before)
				text = strings.Replace(text, before, after, 1)
			}
			files[shoot] = &fstest.MapFile{Data: []byte(text)}
			l, violations, err := LoadFS(t.Context(), files, ".", Options{})
			require.NoError(t, err)
			require.Empty(t, violations)
			found, err := l.ValidateAt(t.Context(), validationTime, nil, schemas.Options{})
			require.NoError(t, err)
			if c.want == "" {
				require.Empty(t, found)
				return
			}
			require.NotEmpty(t, found)
			assert.Contains(t, found[0].Field+" "+found[0].Message, c.want)
			assert.Equal(t, shoot, found[0].File)
		})
	}
}

// TestDefaultedNetworksAreImmutable: networks that the Seed defaults are immutable, too.
func TestDefaultedNetworksAreImmutable(t *testing.T) {
	const shoot, seed = "projects/local/shoot.yaml", "seeds/local.yaml"
	open := map[string]string{"    pods: 100.96.0.0/11\n": "", "    services: 100.72.0.0/13\n": ""}
	load := func(changes map[string]map[string]string) *Landscape {
		files := readMemoryFS(t, "local")
		for name, replaced := range changes {
			text := string(files[name].Data)
			for before, after := range replaced {
				require.Contains(t, text, before)
				text = strings.Replace(text, before, after, 1)
			}
			files[name] = &fstest.MapFile{Data: []byte(text)}
		}
		l, violations, err := LoadFS(t.Context(), files, ".", Options{})
		require.NoError(t, err)
		require.Empty(t, violations)
		return l
	}
	for _, c := range []struct {
		name     string
		old, new map[string]map[string]string
		want     string
	}{
		{"the same is written down", map[string]map[string]string{shoot: open}, nil, ""},
		{"left open still", map[string]map[string]string{shoot: open}, map[string]map[string]string{shoot: open}, ""},
		{"left open still, and the Seed has others now", map[string]map[string]string{shoot: open}, map[string]map[string]string{shoot: open, seed: {"pods: 100.96.0.0/11": "pods: 100.64.0.0/13"}}, ""},
		{"another one", map[string]map[string]string{shoot: open}, map[string]map[string]string{shoot: {"pods: 100.96.0.0/11": "pods: 100.64.0.0/13"}},
			`spec.networking.pods cannot be changed; it was 100.96.0.0/11; the API fills in unset fields (spec.networking.pods was unset before, so it is 100.96.0.0/11: the range that Seed local has for Shoots`},
	} {
		t.Run(c.name, func(t *testing.T) {
			found, err := load(c.new).ValidateAt(t.Context(), validationTime, load(c.old), schemas.Options{})
			require.NoError(t, err)
			found = slices.DeleteFunc(found, func(v schemas.Violation) bool { return v.Kind != "Shoot" })
			if c.want == "" {
				require.Empty(t, found)
				return
			}
			require.Len(t, found, 1)
			assert.Contains(t, found[0].Field+" "+found[0].Message, c.want)
			assert.Equal(t, shoot, found[0].File)
			assert.NotZero(t, found[0].Line)
		})
	}
}
