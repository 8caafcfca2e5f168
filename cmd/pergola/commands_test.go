// SPDX-License-Identifier: Apache-2.0

package main

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pergola-dev/pergola/health"
	"github.com/pergola-dev/pergola/render"
)

const (
	healthyDeployment = `apiVersion: apps/v1
kind: Deployment
metadata: {name: good, namespace: garden, generation: 2}
spec: {replicas: 1}
status:
  observedGeneration: 2
  replicas: 1
  updatedReplicas: 1
  availableReplicas: 1
  readyReplicas: 1
  conditions:
  - {type: Available, status: "True"}
  - {type: Progressing, status: "True", reason: NewReplicaSetAvailable}
`
	unhealthyDeployment = `apiVersion: apps/v1
kind: Deployment
metadata: {name: bad, namespace: garden, generation: 2}
spec: {replicas: 1}
status:
  observedGeneration: 2
  conditions:
  - {type: Available, status: "False", reason: MinimumReplicasUnavailable, message: Deployment does not have minimum availability.}
`
)

func TestHealth(t *testing.T) {
	o := pergolaWith(t, healthyDeployment, "health")
	assert.Equal(t, 0, o.code, "%+v", o)
	verdicts := decode[[]health.Verdict](t, o)
	require.Len(t, verdicts, 1)
	assert.True(t, verdicts[0].Healthy)
	assert.Equal(t, "good", verdicts[0].Name)

	o = pergolaWith(t, healthyDeployment+"---\n"+unhealthyDeployment, "health", "-f", "-")
	assert.Equal(t, 1, o.code)
	verdicts = decode[[]health.Verdict](t, o)
	require.Len(t, verdicts, 2)
	assert.True(t, verdicts[0].Healthy)
	assert.False(t, verdicts[1].Healthy)

	dir := t.TempDir()
	writeFile(t, dir, "list.json", `{"apiVersion": "v1", "kind": "List", "items": [{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "data": {"a": "aHVudGVyMg=="}}]}`)
	o = pergola(t, "health", "-f", filepath.Join(dir, "list.json"), "-o", "text")
	assert.Equal(t, 0, o.code)
	assert.Contains(t, o.stdout, "Secret s: healthy: Secret exists\n")
	assert.NotContains(t, o.stdout, "aHVudGVyMg")

	for name, test := range map[string]struct {
		stdin  string
		args   []string
		stderr string
	}{
		"nothing":        {"", nil, "no objects read from <stdin>: "},
		"only comments":  {"# a\n---\n", []string{"-o", "text"}, "no objects read from <stdin>: "},
		"an empty list":  {`{"apiVersion": "v1", "kind": "List", "items": []}`, nil, "no objects read from <stdin>: "},
		"no file":        {"", []string{"-f", filepath.Join(dir, "nope")}, "no such file"},
		"no object":      {"a: b\n", nil, "<stdin>:1:1: not an object: apiVersion and kind are required"},
		"no YAML":        {"a: [\n", nil, "<stdin>:1:4: this is not YAML: the bracket ["},
		"unknown format": {"", []string{"-o", "xml"}, `--output "xml": want one of json, text`},
		"an argument":    {"", []string{"file"}, "open file: no such file"},
	} {
		t.Run(name, func(t *testing.T) {
			o := pergolaWith(t, test.stdin, append([]string{"health"}, test.args...)...)
			assert.Equal(t, 2, o.code)
			assert.Contains(t, o.stderr, test.stderr)
		})
	}
}

func TestFlow(t *testing.T) {
	for _, owner := range []string{"garden", "seed", "shoot", "Garden"} {
		for _, operation := range []string{"reconcile", "delete"} {
			o := pergola(t, "flow", owner, "--operation", operation)
			assert.Equal(t, 0, o.code, "%+v", o)
			assert.NotEmpty(t, o.stdout)
			o = pergola(t, "flow", owner, "--operation", operation, "-o", "dot")
			assert.Equal(t, 0, o.code)
			assert.Regexp(t, `(?s)^digraph .*->.*\}\n$`, o.stdout)
			assert.Equal(t, o.stdout, pergola(t, "flow", owner, "--operation", operation, "-o", "dot").stdout, "always in the same order")
		}
	}
	text := pergola(t, "flow", "shoot").stdout
	assert.Regexp(t, `(?m)^kube-apiserver +apply kube-apiserver  after etcd-events healthy, etcd-main healthy`, text)
	assert.Regexp(t, `(?m)^infrastructure +request infrastructure for reconcile  after cluster applied`, text)
	end := pergola(t, "flow", "garden", "--operation", "delete")
	assert.Regexp(t, `(?m)^unused +await unused$`, end.stdout)
	assert.Regexp(t, `(?m)^secrets +task remove-secrets  after gardener-resource-manager healthy$`, end.stdout)
	assert.Contains(t, pergola(t, "flow", "garden", "--operation", "delete", "-o", "dot").stdout, `"garden-namespace" [label="garden-namespace\nremove garden-namespace and keep the objects"];`)
	assert.Contains(t, pergola(t, "flow", "shoot", "-o", "json").stdout, `"verb": "request",
      "bundles": [
        "worker"
      ],
      "operation": "reconcile",`)
	flow := decode[render.Flow](t, pergola(t, "flow", "seed", "-o", "json"))
	assert.Equal(t, "reconcile", flow.Operation)
	assert.NotEmpty(t, flow.Nodes)

	for name, test := range map[string]struct {
		args   []string
		stderr string
	}{
		"unknown owner":     {[]string{"cluster"}, `owner "cluster": want one of garden, seed, shoot`},
		"unknown operation": {[]string{"seed", "--operation", "explode"}, `components/seed/flow.cue: there is no operation "explode"; want one of reconcile, delete`},
		"unknown format":    {[]string{"seed", "-o", "svg"}, `--output "svg": want one of text, dot, json`},
		"no owner":          {nil, "garden|seed|shoot is missing: pergola flow garden|seed|shoot [flags]; pergola flow --help has examples"},
	} {
		t.Run(name, func(t *testing.T) {
			o := pergola(t, append([]string{"flow"}, test.args...)...)
			assert.Equal(t, commandResult{2, "", "Error: " + test.stderr + "\n"}, o)
		})
	}
}

// TestEveryCommand: each command has help with an example, and exit code 2 for unknown flags and
// missing landscapes.
func TestEveryCommand(t *testing.T) {
	for _, cmd := range newRoot().Commands() {
		if cmd.Name() == "completion" || cmd.Name() == "help" {
			continue
		}
		t.Run(cmd.Name(), func(t *testing.T) {
			help := pergola(t, cmd.Name(), "--help")
			assert.Equal(t, 0, help.code)
			assert.Contains(t, help.stdout, "Examples:\n  ")
			assert.Contains(t, help.stdout, "pergola "+cmd.Name())
			assert.Equal(t, 2, pergola(t, cmd.Name(), "--nonsense").code)
			if cmd.Flags().Lookup("output") != nil {
				o := pergola(t, cmd.Name(), "garden", "-o", "nonsense")
				assert.Equal(t, 2, o.code)
				assert.Empty(t, o.stdout)
			}
			missing := pergola(t, cmd.Name(), filepath.Join(t.TempDir(), "nope"))
			assert.Equal(t, 2, missing.code, "%+v", missing)
			assert.Contains(t, missing.stderr, "Error: ")
		})
	}
}

func TestRoot(t *testing.T) {
	assert.Equal(t, pergola(t, "version"), pergola(t, "--version"))
	o := pergola(t, "explode")
	assert.Equal(t, 2, o.code)
	assert.Contains(t, o.stderr, `there is no command "explode"`)
	for _, meant := range []string{"apply", "diff"} {
		assert.Contains(t, pergola(t, "plan").stderr, meant, "the words of other tools")
	}
	assert.Equal(t, 0, pergola(t).code, "without a command it helps")
}
