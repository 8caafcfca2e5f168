// SPDX-License-Identifier: Apache-2.0

package landscapes

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/pergola-dev/pergola/health"
)

func sampleObject(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	require.NoError(t, yaml.Unmarshal([]byte(text), &object.Object))
	return object
}

const (
	failedDatabase = "{apiVersion: example.org/v1, kind: Database, metadata: {name: a}, status: {phase: Failed, reason: disk}}"
	stalledCache   = "{apiVersion: example.org/v1, kind: Cache, metadata: {name: a}, status: {conditions: [{type: Stalled, status: 'True', message: stuck}]}}"
)

// TestHealthConfig: spec.health decides, in a landscape and in a separate file.
func TestHealthConfig(t *testing.T) {
	const rule = `rules: [{apiGroup: example.org, kind: Database, healthy: self.status.phase == "Running", message: '"phase " + self.status.phase'}]`
	for name, test := range map[string]struct {
		health          string
		database, cache bool
		message         string
	}{
		"nothing said":   {"{}", true, false, "Database exists"},
		"a rule":         {"{" + rule + "}", false, false, "phase Failed"},
		"existence only": {"{otherKinds: Existence}", true, true, "Database exists"},
		"both":           {"{" + rule + ", otherKinds: Existence}", false, true, "phase Failed"},
		"by default":     {"{" + rule + ", otherKinds: Status}", false, false, "phase Failed"},
	} {
		t.Run(name, func(t *testing.T) {
			l, lines := validateFiles(t, map[string]string{"landscape.yaml": withSpec("  health: " + test.health + "\n")}, ".")
			require.Empty(t, lines)
			ofLandscape, err := l.HealthConfig()
			require.NoError(t, err)
			ofFile, found, err := ParseHealthConfig(t.Context(), "rules.yaml", []byte("# ours\n---\n"+test.health))
			require.NoError(t, err)
			require.Empty(t, found)
			for _, j := range []HealthConfig{ofLandscape, ofFile} {
				v := health.Check(sampleObject(t, failedDatabase), j.Options()...)
				assert.Equal(t, test.database, v.Healthy)
				assert.Equal(t, test.message, v.Message)
				assert.Equal(t, test.cache, health.Check(sampleObject(t, stalledCache), j.Options()...).Healthy)
			}
		})
	}
	for _, text := range []string{"  health:\n", "  facts: ''\n"} {
		l, _ := validateFiles(t, map[string]string{"landscape.yaml": withSpec(text)}, ".")
		j, err := l.HealthConfig()
		require.NoError(t, err)
		assert.Equal(t, HealthConfig{}, j)
	}
}

func TestHealthConfigOfAnInvalidLandscape(t *testing.T) {
	l, _ := validateFiles(t, map[string]string{"landscape.yaml": withSpec("  health: {rules: [{kind: Pod, healthy: obj}]}\n")}, ".")
	_, err := l.HealthConfig()
	assert.ErrorContains(t, err, "landscape.yaml: spec.health: rules[0].healthy:1:1: undeclared reference to 'obj'")
}

// TestParseHealthConfig: findings have the fields and places of the file; « marks the places.
func TestParseHealthConfig(t *testing.T) {
	for name, test := range map[string]struct {
		text string
		want []string
	}{
		"a typing error":   {"rules:\n- {kind: Pod, healthy: self.a && «obj}\n", []string{"rules[0].healthy: undeclared reference to 'obj'; the object is self [landscape/health]"}},
		"a list":           {"rules:\n- {kind: Pod, healthy: «true}\n", []string{"rules[0].healthy: must be text"}},
		"an unknown field": {"«rule: []\n", []string{`rule: the field "rule" does not exist; did you mean "rules"?`}},
		"no map":           {"«- a\n", []string{"must hold one document with the fields of spec.health: rules, otherKinds [landscape/health]"}},
		"nothing":          {"«# later\n", []string{"must hold one document"}},
		"two documents":    {"«rules: []\n---\nrules: []\n", []string{"must hold one document"}},
		"no YAML":          {"rules: «[\n", []string{"this is not YAML: "}},
		"text and more":    {"rules:\n- kind: Pod\n  healthy: 'true'\n  message: «\"phase \" + self.status.phase # why\n", []string{"this is not YAML: the value continues after its quotes; put the whole value in quotes: '\"phase \" + self.status.phase' ["}},
		"single quotes":    {"rules:\n- kind: Pod\n  healthy: «'a' == self.status.phase\n", []string{"this is not YAML: the value continues after its quotes; put the whole value in quotes: \"'a' == self.status.phase\" ["}},
		"both quotes":      {"rules:\n- kind: Pod\n  healthy: «'a' + \"b\" == self.x\n", []string{"this is not YAML: the value continues after its quotes; put the whole value in quotes: '''a'' + \"b\" == self.x' ["}},
		"in braces":        {"rules:\n- {kind: Pod, message: «\"a,\" + string(self.b, 'x}'), healthy: 'true'}\n", []string{"this is not YAML: the value continues after its quotes; put the whole value in quotes: '\"a,\" + string(self.b, ''x}'')' ["}},
		"a tag":            {"rules:\n- kind: Pod\n  healthy: «!self.paused\n", []string{"the value has the tag !self.paused, which API objects do not know; text that begins with ! needs quotes"}},
		"elsewhere":        {"rules:\n- kind: Pod\n  healthy: 'true'\n  progressing: |\n    a: \"b\" c\n  a: b«: c\n", []string{"this is not YAML: the value holds a colon and a space"}},
		"a whole one":      {"«apiVersion: a/v1\nkind: Landscape\n", []string{"is a Landscape: write the fields of its spec.health to a file of their own"}},
		"another object":   {"«apiVersion: a/v1\n«kind: Thing\n", []string{`apiVersion: the field "apiVersion" does not exist`, `kind: the field "kind" does not exist`}},
	} {
		t.Run(name, func(t *testing.T) {
			text, places := extractMarks(test.text)
			j, found, err := ParseHealthConfig(t.Context(), "rules.yaml", []byte(text))
			require.NoError(t, err)
			assert.Nil(t, j.Rules)
			require.Len(t, found, len(test.want), "%v", found)
			for i, want := range test.want {
				if name != "no YAML" && name != "elsewhere" {
					assert.Contains(t, found[i].String(), "rules.yaml:"+places[i]+": error: "+want)
				}
				assert.Contains(t, found[i].String(), want)
			}
		})
	}
	_, found, err := ParseHealthConfig(t.Context(), "rules.yaml", []byte("#"+strings.Repeat("x", MaxFileSize)))
	require.NoError(t, err)
	require.Len(t, found, 1)
	assert.Equal(t, "rules.yaml: error: is larger than 1 MiB: it has 1.1 MiB; make several files of it [landscape/limits]", found[0].String())
}

// TestExampleOfHealth: the example in the README is valid and works as described.
func TestExampleOfHealth(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	example := regexp.MustCompile("(?s)```yaml name=health\n(.*?)```").FindSubmatch(readme)
	require.NotNil(t, example)
	spec, ok := strings.CutPrefix(string(example[1]), "spec:\n")
	require.True(t, ok)
	l, lines := validateFiles(t, map[string]string{"landscape.yaml": withSpec(spec)}, ".")
	require.Empty(t, lines)
	require.NotNil(t, l.Config.Spec.ManagedResourceProgressingThreshold)
	j, err := l.HealthConfig()
	require.NoError(t, err)
	cluster := func(status string) health.Verdict {
		return health.Check(sampleObject(t, "{apiVersion: postgresql.cnpg.io/v1, kind: Cluster, metadata: {name: a, generation: 2}, spec: {instances: 3}, status: "+status+"}"), j.Options()...)
	}
	v := cluster("{phase: Failing over, readyInstances: 3}")
	assert.Equal(t, []any{false, false, "phase is Failing over"}, []any{v.Healthy, v.Progressing, v.Message})
	v = cluster("{phase: Cluster in healthy state, readyInstances: 2}")
	assert.Equal(t, []any{true, true, "phase is Cluster in healthy state"}, []any{v.Healthy, v.Progressing, v.Message})
	v = cluster("{phase: Cluster in healthy state, readyInstances: 3}")
	assert.Equal(t, []any{true, false, health.StatusCurrent}, []any{v.Healthy, v.Progressing, v.Status})
	v = cluster("null")
	assert.Equal(t, []any{false, true}, []any{v.Healthy, v.Progressing})
}
