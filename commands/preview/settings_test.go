// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/landscapes"
)

// TestSettingNotes: stronger and weaker protection is noted, equivalent settings are not.
func TestSettingNotes(t *testing.T) {
	const limit = " (where an operator syncs, its Landscape in the cluster is the limit)"
	const fewer, more = "more protection: fewer objects may be deleted and recreated without an approval", "less protection: more objects may be deleted and recreated without an approval" + limit
	for _, test := range []struct {
		name, old, new string
		notes          []string
	}{
		{"review goes", "  review: Required\n", "", []string{"review: Required → (none, default Optional): less protection: deletions that no review shows are no longer held" + limit}},
		{"review comes", "", "  review: Required\n", []string{"review: (none, default Optional) → Required: more protection: deletions that no review shows are held from now on"}},
		{"defaults spelled out", "", "  review: Optional\n  forceConflicts: false\n  gardenAPI: crd\n  deletionGate: {maxDeletions: 100, maxShare: 50%}\n", nil},
		{"another Gardener API", "", "  gardenAPI: aggregated\n", []string{"gardenAPI: (none, default crd) → aggregated: less protection: the data of one API is not visible in the other: existing Projects, Seeds and Shoots " +
			"would disappear; keep the value, unless nothing has been applied yet"}},
		{"more deletions", "  deletionGate: {maxDeletions: 9}\n", "  deletionGate: {maxDeletions: 10}\n", []string{"deletionGate.maxDeletions: 9 → 10: " + more}},
		{"the gate goes", "  deletionGate: {maxDeletions: 0, maxShare: 100%}\n", "", []string{
			"deletionGate.maxDeletions: 0 → (none, default 100): " + more, "deletionGate.maxShare: 100% → (none, default 50%): " + fewer}},
		{"a kind less and one more", "", "  deletionGate: {protectedKinds: [Project, Shoot, Seed, Garden, Etcd, CustomResourceDefinition, Namespace, PersistentVolume, Lease]}\n", []string{
			"deletionGate.protectedKinds: without PersistentVolumeClaim, with Lease: less protection: objects of PersistentVolumeClaim are deleted without an approval" + limit +
				"; more protection: objects of Lease are no longer deleted without an approval"}},
		{"kinds in another order", "  deletionGate: {protectedKinds: [Seed, Shoot]}\n", "  deletionGate: {protectedKinds: [Shoot, Seed]}\n", nil},
		{"nothing is protected", "  deletionGate: {protectedKinds: [Seed]}\n", "  deletionGate: {protectedKinds: []}\n", []string{
			"deletionGate.protectedKinds: without Seed: less protection: objects of Seed are deleted without an approval" + limit}},
		{"signatures", "  source: {url: 'https://git.example.org/x', verify: {secretRef: {name: keys}}}\n", "  source: {url: 'https://git.example.org/x'}\n", []string{
			`source.verify: {"secretRef":{"name":"keys"}} → (none): less protection: signatures are no longer required, unless the Landscape in the cluster requires them`}},
		{"force", "", "  forceConflicts: true\n", []string{
			"forceConflicts: (none, default false) → true: less protection: fields that others have set are overwritten (where an operator syncs, only if its Landscape in the cluster says so, too)"}},
		{"external", "  external: [{kind: Secret, name: a}]\n", "  external: [{kind: Secret, name: b}, {kind: Secret, name: a}]\n", []string{
			`external: `}},
		{"an address with a password", "  notifications: [{name: a, type: webhook, url: 'https://me:correct-horse@example.org/x'}]\n", "  notifications: [{name: a, type: webhook, url: 'https://me:battery-staple@example.org/x'}]\n", []string{
			"notifications: (hidden value changed): without effect: only the Landscape in a cluster can set this"}},
		{"another catalogue", "  catalogue: {version: 1.0.0}\n", "  catalogue: {version: 1.1.0}\n", nil},
		{"no catalogue", "  catalogue: {version: 1.0.0}\n", "", []string{"catalogue.version: 1.0.0 → (none): less protection: "}},
		{"what health is judged by", "", "  featureGates: {PrometheusHealthChecks: true}\n", []string{
			"featureGates.PrometheusHealthChecks: (none, default false) → true: changes when objects count as healthy"}},
		{"a gate that decides what is deployed", "", "  featureGates: {RemoveVali: true, PrometheusHealthChecks: false}\n", nil},
		{"images", "", "  images: [{name: etcd, tag: 1.0.0}]\n", nil},
		{"a line in a value", "", "  suspension: {reason: \"a\\nNote: all is well\"}\n", []string{
			`suspension: (none) → {"reason":"a\nNote: all is well"}: without effect: only the Landscape in a cluster can set this`}},
		{"a cluster with dots", "", "  clusters: {seeds: {a.b: {context: x}}}\n", []string{"clusters.seeds[a.b].context: (none) → x: "}},
	} {
		t.Run(test.name, func(t *testing.T) {
			side := func(spec string) *landscapes.Landscape {
				l := landscapeOf(t, "metadata: {name: x}\nspec:\n  layers: []\n"+spec)
				require.NotNil(t, l.ConfigDeclaration)
				return l
			}
			notes := SettingNotes(side(test.old), side(test.new))
			require.Len(t, notes, len(test.notes), "%q", notes)
			for i, want := range test.notes {
				want = "landscape.yaml: spec." + want
				if strings.HasSuffix(want, " ") {
					assert.True(t, strings.HasPrefix(notes[i], want), notes[i])
				} else {
					assert.Equal(t, want, notes[i])
				}
				assert.NotContains(t, notes[i], "horse")
				assert.NotContains(t, notes[i], "\n")
			}
		})
	}
}

// TestEveryFieldHasASettingRule: each field of landscape.yaml has an entry or a plain note by
// decision.
func TestEveryFieldHasASettingRule(t *testing.T) {
	known := map[string]bool{}
	var fields func(spec reflect.Type)
	fields = func(spec reflect.Type) {
		for i := range spec.NumField() {
			name, rest, _ := strings.Cut(spec.Field(i).Tag.Get("json"), ",")
			if rest == "inline" {
				fields(spec.Field(i).Type)
				continue
			}
			known[name] = true
		}
	}
	fields(reflect.TypeFor[landscapev1alpha1.LandscapeSpec]())
	told := map[string]bool{}
	for _, s := range settingRules {
		top, _, _ := strings.Cut(s.path, ".")
		told[top] = true
	}
	assert.Equal(t, known, told)
}

// landscapeOf loads a landscape.yaml with this text after its kind.
func landscapeOf(t *testing.T, text string) *landscapes.Landscape {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "landscape.yaml"), []byte("apiVersion: landscape.pergola.dev/v1alpha1\nkind: Landscape\n"+text), 0o644))
	l, _, err := landscapes.Load(t.Context(), dir, landscapes.Options{})
	require.NoError(t, err)
	return l
}
