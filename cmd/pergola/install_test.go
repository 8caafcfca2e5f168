// SPDX-License-Identifier: Apache-2.0

package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pergola-dev/pergola/change"
	"github.com/pergola-dev/pergola/deploy"
)

// TestInstallRenders: -o yaml needs no cluster and prints the definition first.
func TestInstallRenders(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "values.yaml")
	writeFile(t, dir, "values.yaml", "image: {repository: registry.example.org/pergola}\nreplicas: 2\n")
	o := pergola(t, "install", "--values", file, "--set", "replicas=3", "-o", "yaml")
	require.Equal(t, 0, o.code, o.stderr)
	assert.Contains(t, o.stdout, "image: registry.example.org/pergola:"+version+"\n")
	assert.Contains(t, o.stdout, "replicas: 3\n", "--set goes before files")
	assert.Less(t, strings.Index(o.stdout, "kind: CustomResourceDefinition"), strings.Index(o.stdout, "kind: Deployment"))

	o = pergola(t, "install", "--role", "gardenlet-access", "--set", "gardenlet.seed=local", "-o", "yaml")
	require.Equal(t, 0, o.code, o.stderr)
	assert.NotContains(t, o.stdout, "kind: Deployment")
}

func TestInstallRefuses(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "values.yaml")
	writeFile(t, dir, "values.yaml", "replicas: 1\nreplicas: 2\n")
	image := []string{"--set", "image.repository=pergola"}
	for name, c := range map[string]struct {
		args []string
		code int
		want string
	}{
		"role":      {[]string{"--role", "scheduler"}, 2, `--role: role "scheduler" does not exist: want one of operator, gardenlet, gardenlet-access`},
		"required":  {nil, 2, "image.repository: is required"},
		"misspelt":  {append(image, "--set", "replica=2", "-o", "yaml"), 2, "unknown value 'replica'"},
		"duplicate": {[]string{"--values", file}, 2, "--values " + file + ": "},
		"missing":   {[]string{"--values", filepath.Join(dir, "none.yaml")}, 2, "none.yaml"},
		"timeout":   {append(image, "--timeout", "0s"), 2, "--timeout 0s: want a time above zero"},
		"uninstall": {[]string{"--uninstall", "-o", "yaml"}, 2, "--uninstall and -o yaml exclude each other"},
		"whose":     {[]string{"--uninstall", "--role", "gardenlet-access", "--dry-run"}, 2, "name the seed with --set gardenlet.seed=NAME"},
		"context":   {append(image, "--context", "nowhere"), 2, "access to the cluster: "},
	} {
		t.Run(name, func(t *testing.T) {
			o := pergola(t, append([]string{"install"}, c.args...)...)
			assert.Equal(t, c.code, o.code, o.stderr)
			assert.Contains(t, o.stderr, c.want)
		})
	}
}

// TestArgumentsOfTheChart: the roles have every flag that the chart passes to their pods.
func TestArgumentsOfTheChart(t *testing.T) {
	for _, role := range []deploy.Role{deploy.Operator, deploy.Gardenlet} {
		in, err := deploy.Render(deploy.Options{Role: role, Values: map[string]any{
			"image": map[string]any{"repository": "pergola"}, "gardenlet": map[string]any{"seed": "local"},
			"operator": map[string]any{"receiver": map[string]any{"proxies": []any{"10.0.0.0/8", "fd00::/8"}}},
		}})
		require.NoError(t, err)
		for _, o := range in.Objects {
			if o.GetKind() != "Deployment" {
				continue
			}
			containers, _, err := unstructured.NestedSlice(o.Object, "spec", "template", "spec", "containers")
			require.NoError(t, err)
			args, _, err := unstructured.NestedStringSlice(containers[0].(map[string]any), "args")
			require.NoError(t, err)
			root := newRoot()
			root.AddCommand(newOperator(), newGardenlet())
			cmd, rest, err := root.Find(args)
			require.NoError(t, err)
			require.Equal(t, string(role), cmd.Name())
			assert.NoError(t, cmd.ParseFlags(rest))
		}
	}
}

// TestUninstallReportsRemainingObjects: a dry run prints what the uninstallation leaves.
func TestUninstallReportsRemainingObjects(t *testing.T) {
	shown := func(i installCommand, role deploy.Role, items ...change.Item) (string, error) {
		cmd := newInstall()
		var b strings.Builder
		cmd.SetOut(&b)
		err := i.printDeletionPlan(cmd, role, change.Plan{Items: items}, nil)
		return b.String(), err
	}
	i := installCommand{namespace: "garden"}
	text, err := shown(i, deploy.Operator, change.Item{Action: change.Delete, Object: change.Ref{Kind: "Service", Namespace: "garden", Name: "a"}})
	require.ErrorIs(t, err, errFinding)
	assert.Equal(t, "delete     Service garden/a\n1 object of Pergola operator would be deleted. Definitions, Landscapes, the priority class, the namespace and all objects that Pergola has applied stay.\n", text)
	i.seed = "nix"
	text, err = shown(i, deploy.GardenletAccess)
	require.NoError(t, err)
	assert.Equal(t, "Pergola gardenlet-access of seed nix is not installed in namespace garden by pergola install: nothing would be deleted.\n", text)
}
