package main

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pergola-dev/pergola/components"
)

// TestHealthByALandscape: rules of a landscape go before ours, and kinds without a rule are judged as it says.
func TestHealthByALandscape(t *testing.T) {
	const objects = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: d, namespace: a}, status: {phase: Odd}}
---
{apiVersion: example.org/v1, kind: Cache, metadata: {name: c, namespace: a}, status: {conditions: [{type: Stalled, status: "True", message: stuck}]}}
`
	const config = "apiVersion: landscape.pergola.dev/v1alpha1\nkind: Landscape\nmetadata: {name: small}\nspec:\n  catalogue: {version: " + components.Version + "}\n"
	dir := t.TempDir()
	smallLandscape(t, dir)
	judge := func(spec string, args ...string) outcome {
		write(t, dir, "landscape.yaml", config+spec)
		return pergolaWith(t, objects, append([]string{"health"}, args...)...)
	}
	const rule = `  health:
    rules:
    - {apiGroup: apps, kind: Deployment, healthy: self.status.phase == "Odd", progressing: "false"}
`
	for name, test := range map[string]struct {
		spec              string
		landscape         bool
		code              int
		deployment, cache bool
	}{
		"no landscape":   {rule, false, 1, false, true},
		"says nothing":   {"", true, 1, false, false},
		"a rule":         {rule, true, 1, true, false},
		"existence only": {rule + "    otherKinds: Existence\n", true, 0, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			var args []string
			if test.landscape {
				args = []string{"--landscape", dir}
			}
			o := judge(test.spec, args...)
			assert.Equal(t, test.code, o.code, "%+v", o)
			verdicts := decode[[]verdict](t, o)
			require.Len(t, verdicts, 2)
			assert.Equal(t, test.deployment, verdicts[0].Healthy)
			assert.Equal(t, test.cache, verdicts[1].Healthy)
		})
	}

	o := judge(rule+"    - {kind: Pod, healthy: obj}\n", "--landscape", dir, "-o", "json")
	assert.Equal(t, 2, o.code, "no verdict about the objects")
	failed := decode[failure](t, o)
	assert.Equal(t, "--landscape "+dir+" is not valid: nothing was judged", failed.Error.Message)
	require.Len(t, failed.Error.Findings, 1)
	assert.Contains(t, o.stderr, filepath.Join(dir, "landscape.yaml")+":9:28: error: Landscape small: spec.health.rules[1].healthy: undeclared reference to 'obj'; the object is self [landscape/health]\n")
	assert.Contains(t, o.stderr, "    - {kind: Pod, healthy: obj}\n", "the line is shown")

	o = judge("", "--landscape", filepath.Join(dir, "nope"))
	assert.Equal(t, 2, o.code)
	assert.Contains(t, o.stderr, "is no landscape: there is no such folder")
}

// TestHealthInTheWordsOfOthers: kstatus and Argo CD side by side.
func TestHealthInTheWordsOfOthers(t *testing.T) {
	o := pergolaWith(t, `{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: a}, status: {phase: Lost}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}
`, "health")
	assert.Equal(t, 0, o.code, "%+v", o)
	verdicts := decode[[]map[string]any](t, o)
	require.Len(t, verdicts, 2)
	assert.Equal(t, []any{"InProgress", "Degraded"}, []any{verdicts[0]["status"], verdicts[0]["argo"]})
	assert.Equal(t, []any{"Current", ""}, []any{verdicts[1]["status"], verdicts[1]["argo"]})
}
