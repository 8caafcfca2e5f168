// SPDX-License-Identifier: Apache-2.0

package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pergola-dev/pergola/components"
)

// TestHealthByALandscape: rules of a landscape override the built-in ones, and it decides how kinds
// without a rule are judged.
func TestHealthByALandscape(t *testing.T) {
	const objects = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: d, namespace: a, labels: {phase: Odd}}}
---
{apiVersion: example.org/v1, kind: Cache, metadata: {name: c, namespace: a}, status: {conditions: [{type: Stalled, status: "True", message: stuck}]}}
`
	const config = "apiVersion: landscape.pergola.dev/v1alpha1\nkind: Landscape\nmetadata: {name: small}\nspec:\n  catalogue: {version: " + components.Version + "}\n"
	dir := t.TempDir()
	smallLandscape(t, dir)
	judge := func(spec string, args ...string) commandResult {
		writeFile(t, dir, "landscape.yaml", config+spec)
		return pergolaWith(t, objects, append([]string{"health"}, args...)...)
	}
	const rule = `  health:
    rules:
    - {apiGroup: apps, kind: Deployment, healthy: self.metadata.labels.phase == "Odd", progressing: "false"}
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
			verdicts := decode[[]healthVerdict](t, o)
			require.Len(t, verdicts, 2)
			assert.Equal(t, test.deployment, verdicts[0].Healthy)
			assert.Equal(t, test.cache, verdicts[1].Healthy)
		})
	}

	o := judge(rule+"    - {kind: Pod, healthy: obj}\n", "--landscape", dir, "-o", "json")
	assert.Equal(t, 2, o.code, "no verdict about the objects")
	failed := decode[errorResult](t, o)
	assert.Equal(t, "--landscape "+dir+" is not valid: nothing was judged", failed.Error.Message)
	require.Len(t, failed.Error.Findings, 1)
	assert.Contains(t, o.stderr, filepath.Join(dir, "landscape.yaml")+":9:28: error: Landscape small: spec.health.rules[1].healthy: undeclared reference to 'obj'; the object is self [landscape/health]\n")
	assert.Contains(t, o.stderr, "    - {kind: Pod, healthy: obj}\n", "the line is shown")

	o = judge("", "--landscape", filepath.Join(dir, "nope"))
	assert.Equal(t, 2, o.code)
	assert.Contains(t, o.stderr, "is not a landscape: there is no such folder")
}

// TestHealthOfKstatusAndArgoCD: the output has the statuses of kstatus and of Argo CD.
func TestHealthOfKstatusAndArgoCD(t *testing.T) {
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

// TestHealthByRules: a file of rules works as in the resource manager, and its errors are reported
// with positions.
func TestHealthByRules(t *testing.T) {
	const objects = `{apiVersion: example.org/v1, kind: Database, metadata: {name: d, namespace: a}, status: {phase: Failed}}
---
{apiVersion: example.org/v1, kind: Cache, metadata: {name: c, namespace: a}, status: {conditions: [{type: Stalled, status: "True", message: stuck}]}}
`
	const rule = "- {apiGroup: example.org, kind: Database, healthy: self.status.phase == \"Running\", message: '\"phase \" + self.status.phase'}\n"
	dir := t.TempDir()
	file := filepath.Join(dir, "rules.yaml")
	judge := func(rules string, args ...string) commandResult {
		writeFile(t, dir, "rules.yaml", rules)
		return pergolaWith(t, objects, append([]string{"health", "--health-rules", file}, args...)...)
	}
	o := judge("rules:\n"+rule, "-o", "text")
	assert.Equal(t, commandResult{1, "Database a/d: not healthy (DatabaseUnhealthy): phase Failed\nCache a/c: not healthy (CacheUnhealthy): stuck\n", ""}, o)
	o = judge("otherKinds: Existence\nrules:\n"+rule, "-o", "text")
	assert.Equal(t, commandResult{1, "Database a/d: not healthy (DatabaseUnhealthy): phase Failed\nCache a/c: healthy because it exists, as no rule applies to it; kstatus says Failed: stuck\n", ""}, o)

	o = judge("rules:\n"+rule+"- kind: Pod\n  healthy: self.status.phase = \"Running\"\n  progresing: 'false'\n", "-o", "json")
	assert.Equal(t, 2, o.code)
	assert.Contains(t, o.stderr, file+":4:30: error: rules[1].healthy: Syntax error: token recognition error at: '= '; two values are compared by == [landscape/health]\n")
	assert.Contains(t, o.stderr, file+`:5:3: error: rules[1].progresing: the field "progresing" does not exist; did you mean "progressing"?`)
	failed := decode[errorResult](t, o)
	assert.Equal(t, "--health-rules "+file+" is not valid: nothing was judged", failed.Error.Message)
	assert.Len(t, failed.Error.Findings, 2)
	same := pergola(t, "resource-manager", "--health-rules", file, "--kubeconfig", "testdata/none")
	assert.Equal(t, 2, same.code)
	assert.Equal(t, strings.ReplaceAll(o.stderr, "nothing was judged", "not started"), same.stderr)

	o = judge("apiVersion: landscape.pergola.dev/v1alpha1\nkind: Landscape\nmetadata: {name: a}\nspec: {}\n", "-o", "text")
	assert.Equal(t, 2, o.code)
	assert.Contains(t, o.stderr, file+":1:1: error: is a Landscape: write the fields of its spec.health to a file of their own")

	o = judge("rules: []\n", "--landscape", dir)
	assert.Equal(t, 2, o.code)
	assert.Contains(t, o.stderr, "[health-rules landscape]")
	o = pergolaWith(t, objects, "health", "--health-rules", filepath.Join(dir, "none"))
	assert.Equal(t, 2, o.code)
	assert.Contains(t, o.stderr, "Error: reading the rules of health: open ")
}

// TestVerdictsForPeople: an alarming message beside "healthy" has the reason why it does not count.
func TestVerdictsForPeople(t *testing.T) {
	for name, test := range map[string]struct{ object, want string }{
		"no rule":            {"{apiVersion: example.org/v1, kind: Cache, metadata: {name: c, namespace: a}, status: {conditions: [{type: Stalled, status: 'True', message: disk full}]}}", "Cache a/c: healthy because it exists, as no rule applies to it; kstatus says Failed: disk full"},
		"no rule, no status": {"{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: a}}", "ConfigMap a/c: healthy: ConfigMap exists"},
		"no namespace":       {"{apiVersion: v1, kind: Namespace, metadata: {name: c}}", "Namespace c: healthy: Namespace exists"},
		"switched off":       {"{apiVersion: apps/v1, kind: Deployment, metadata: {name: d, namespace: a, generation: 2, annotations: {resources.gardener.cloud/skip-health-check: 'true'}}, status: {observedGeneration: 1}}", "Deployment a/d: healthy because an annotation switches its health checks off; kstatus says InProgress: Deployment generation is 2, but latest observed generation is 1"},
		"by its rule":        {"{apiVersion: v1, kind: Pod, metadata: {name: p, namespace: a}, status: {phase: Running, conditions: [{type: Ready, status: 'False'}]}}", "Pod a/p: healthy by its rule; kstatus says InProgress"},
		"rolled out, kstatus waits for the revision":   {"{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: s, namespace: a, generation: 1}, spec: {replicas: 1}, status: {observedGeneration: 1, replicas: 1, readyReplicas: 1, currentReplicas: 1, updatedReplicas: 1, currentRevision: s-1, updateRevision: s-2}}", "StatefulSet a/s: healthy by its rule; kstatus says InProgress: Waiting for updated revision to match current\n"},
		"rolled out, kstatus counts fewer current":     {"{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: s, namespace: a, generation: 1}, spec: {replicas: 1}, status: {observedGeneration: 1, replicas: 1, readyReplicas: 1, updatedReplicas: 1}}", "StatefulSet a/s: healthy by its rule; kstatus says InProgress: current: 0/1\n"},
		"rolled out, too many replicas":                {"{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: s, namespace: a, generation: 1}, spec: {replicas: 1}, status: {observedGeneration: 1, replicas: 2, readyReplicas: 2, currentReplicas: 2, updatedReplicas: 2}}", "StatefulSet a/s: healthy by its rule; kstatus says InProgress: Pending termination: 1\n"},
		"rolled out, kstatus counts the ready":         {"{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: d, namespace: a, generation: 1}, status: {observedGeneration: 1, desiredNumberScheduled: 2, currentNumberScheduled: 2, updatedNumberScheduled: 2, numberAvailable: 2, numberReady: 1}}", "DaemonSet a/d: healthy by its rule; kstatus says InProgress: Ready: 1/2\n"},
		"rolled out, kstatus wants the desired number": {"{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: d, namespace: a, generation: 1}, status: {observedGeneration: 1}}", "DaemonSet a/d: healthy by its rule; kstatus says InProgress: Missing .status.desiredNumberScheduled\n"},
		"rolled out, kstatus wants more replicas":      {"{apiVersion: apps/v1, kind: Deployment, metadata: {name: d, namespace: a, generation: 1}, spec: {replicas: 1, progressDeadlineSeconds: 600}, status: {observedGeneration: 1, replicas: 2, readyReplicas: 2, updatedReplicas: 1, availableReplicas: 2, conditions: [{type: Available, status: 'True'}, {type: Progressing, status: 'True', reason: NewReplicaSetAvailable}]}}", "Deployment a/d: healthy by its rule; kstatus says InProgress: Pending termination: 1\n"},
		"healthy":     {healthyDeployment, "Deployment garden/good: healthy"},
		"not healthy": {unhealthyDeployment, "Deployment garden/bad: not healthy, progressing (DeploymentUnhealthy): "},
		"both":        {"{apiVersion: apps/v1, kind: Deployment, metadata: {name: d, namespace: a, generation: 2}, status: {observedGeneration: 1}}", "Deployment a/d: not healthy, progressing (DeploymentUnhealthy): observed generation outdated (1/2)"},
	} {
		t.Run(name, func(t *testing.T) {
			o := pergolaWith(t, test.object, "health", "-o", "text")
			assert.True(t, strings.HasPrefix(o.stdout, test.want), o.stdout)
		})
	}
	help := pergola(t, "health", "--help").stdout
	assert.Contains(t, help, "is healthy because it exists")
	assert.Contains(t, help, "--health-rules")
}
