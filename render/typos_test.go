// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/pergola-dev/pergola/components"
	"github.com/pergola-dev/pergola/schemas"
)

// seededTypo is a patch with a misspelt field.
type seededTypo struct {
	component, engine string
	object            *unstructured.Unstructured
	// field is the misspelt one: in the metadata if the definition allows any other field.
	field []string
}

// hashedName matches names that objects get only after overlays.
var hashedName = regexp.MustCompile(`-[0-9a-f]{8}$`)

// engineOf is the engine that made an object.
func engineOf(o Object) string {
	switch {
	case strings.Contains(o.Origin.File, ".cue"):
		return "cue"
	case strings.Contains(o.Origin.File, "/charts/"), strings.Contains(o.Origin.File, "/chart/"):
		return "helm"
	case strings.HasPrefix(o.Origin.File, "api/crds/"):
		return "crds"
	}
	return "kustomize"
}

// typosIn finds an object of each kind and engine among bundles, and a field of it to misspell.
func typosIn(t *testing.T, bundles []Bundle) map[string]seededTypo {
	t.Helper()
	out := map[string]seededTypo{}
	for _, b := range bundles {
		for _, o := range b.Objects {
			id := engineOf(o) + " " + o.GetKind()
			if _, known := out[id]; known || strings.Contains(o.GetName(), symbolicMark) || hashedName.MatchString(o.GetName()) || strings.Contains(o.GetKind(), "Secret") {
				continue
			}
			typo := seededTypo{component: b.Component, engine: engineOf(o), object: o.Unstructured, field: []string{"metadata", "labels"}}
			kind := newKindSchemas(Options{Catalogue: components.FS}).schemaOf(o.GroupVersionKind())
			require.NotNil(t, kind, "%s: no schema", o.GroupVersionKind())
			if spec := kind.Root.Properties["spec"]; spec != nil && !spec.AllowsUnknownFields && spec.Type == "object" {
				typo.field = []string{"spec", slices.MaxFunc(spec.FieldNames(), func(a, b string) int { return len(a) - len(b) })}
			} else if spec == nil {
				names := slices.DeleteFunc(kind.Root.FieldNames(), func(n string) bool { return slices.Contains([]string{"apiVersion", "kind", "metadata", "status"}, n) })
				if len(names) > 0 {
					typo.field = names[:1]
				}
			}
			out[id] = typo
		}
	}
	return out
}

// misspelt omits a letter of the field.
func (s seededTypo) misspelt() []string {
	last := s.field[len(s.field)-1]
	return append(slices.Clone(s.field[:len(s.field)-1]), last[:len(last)-2]+last[len(last)-1:])
}

// patch is a strategic merge that sets the field.
func (s seededTypo) patch(t *testing.T) string {
	t.Helper()
	content := map[string]any{"apiVersion": s.object.GetAPIVersion(), "kind": s.object.GetKind(), "metadata": map[string]any{"name": s.object.GetName()}}
	require.NoError(t, unstructured.SetNestedField(content, map[string]any{}, s.misspelt()...))
	text, err := yaml.Marshal(content)
	require.NoError(t, err)
	return string(text)
}

// TestSeededTypos: a misspelt field is found at its line, in one object of every kind that each
// engine makes in the demonstration.
func TestSeededTypos(t *testing.T) {
	typos := typosIn(t, renderedVariants["local"](t).bundles())
	assert.Greater(t, len(typos), 30)
	engines := map[string]int{}
	files, want := map[string]string{}, map[string]string{}
	for _, id := range slices.Sorted(maps.Keys(typos)) {
		typo := typos[id]
		engines[typo.engine]++
		folder := "components/" + typo.component + "/"
		file := fmt.Sprintf("%s%02d.yaml", folder, len(files))
		files[folder+"kustomization.yaml"] += "- path: " + strings.TrimPrefix(file, folder) + "\n"
		files[file] = typo.patch(t)
		line := 1 + strings.Count(files[file][:strings.Index(files[file], typo.misspelt()[len(typo.field)-1]+":")], "\n")
		want[id] = fmt.Sprintf("%s:%d:", file, line)
	}
	for name := range files {
		if strings.HasSuffix(name, "kustomization.yaml") {
			files[name] = "patches:\n" + files[name]
		}
	}
	assert.Equal(t, []string{"crds", "cue", "helm", "kustomize"}, slices.Sorted(maps.Keys(engines)))
	violations := CheckLandscape(components.FS, extendedLandscape(t, files))
	for id, place := range want {
		i := slices.IndexFunc(violations, func(v schemas.Violation) bool { return strings.HasPrefix(v.String(), place) })
		if assert.GreaterOrEqual(t, i, 0, "%s: nothing is found at %s:\n%s", id, place, files[strings.Split(place, ":")[0]]) {
			assert.Equal(t, []any{schemas.SeverityError, ruleObject}, []any{violations[i].Severity, violations[i].Rule}, id)
			assert.Contains(t, violations[i].Message, "does not exist", id)
		}
	}
}
