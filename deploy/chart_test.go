// SPDX-License-Identifier: Apache-2.0

package deploy_test

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"

	"github.com/pergola-dev/pergola/components"
	"github.com/pergola-dev/pergola/deploy"
	"github.com/pergola-dev/pergola/render"
)

var update = flag.Bool("update", false, "record golden files and Kustomize bases anew")

// fullValues has every value that affects the rendering.
func fullValues(t *testing.T) map[string]any {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "full-values.yaml"))
	require.NoError(t, err)
	values := map[string]any{}
	require.NoError(t, yaml.UnmarshalStrict(data, &values))
	return values
}

func manifest(t *testing.T, objects []*unstructured.Unstructured) []byte {
	t.Helper()
	var out bytes.Buffer
	for _, o := range objects {
		data, err := render.MarshalYAML(o.Object)
		require.NoError(t, err)
		out.WriteString("---\n")
		out.Write(data)
	}
	return out.Bytes()
}

func requireGolden(t *testing.T, path string, got []byte) {
	t.Helper()
	if *update {
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, got, 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, string(want), string(got), "record it anew with go test ./deploy -update, and review the difference")
}

func TestGolden(t *testing.T) {
	for _, role := range deploy.Roles() {
		requireGolden(t, filepath.Join("testdata", string(role)+"-full.yaml"), manifest(t, renderRole(t, role, fullValues(t)).Objects))
	}
	requireGolden(t, filepath.Join("testdata", "gardenlet-access.yaml"), manifest(t, renderRole(t, deploy.GardenletAccess).Objects))
}

// TestKustomizeBases checks that the bases equal the chart with minimal values.
func TestKustomizeBases(t *testing.T) {
	for _, role := range []deploy.Role{deploy.Operator, deploy.Gardenlet} {
		dir := filepath.Join("kustomize", string(role))
		in := renderRole(t, role)
		requireGolden(t, filepath.Join(dir, "objects.yaml"), manifest(t, in.Objects))
		want := in.Objects
		if len(in.Definitions) > 0 {
			requireGolden(t, filepath.Join(dir, "definitions.yaml"), manifest(t, in.Definitions))
			want = append(in.Definitions, want...)
		}
		built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), dir)
		require.NoError(t, err)
		assert.Equal(t, len(want), built.Size())
	}
}

func TestVersions(t *testing.T) {
	const version = components.Version
	chart, err := os.ReadFile("charts/pergola/Chart.yaml")
	require.NoError(t, err)
	assert.Contains(t, string(chart), "\nversion: "+version+"\nappVersion: "+version+"\n")
	api, err := os.ReadFile("../api/crds/landscape.pergola.dev_landscapes.yaml")
	require.NoError(t, err)
	const copied = "charts/pergola/crds/landscape.pergola.dev_landscapes.yaml"
	if *update {
		require.NoError(t, os.WriteFile(copied, api, 0o644))
	}
	chart, err = os.ReadFile(copied)
	require.NoError(t, err)
	assert.Equal(t, string(api), string(chart), "go test ./deploy -update copies it")
}

func TestInvalidValues(t *testing.T) {
	image := map[string]any{"repository": "pergola"}
	for name, c := range map[string]struct {
		role   deploy.Role
		values map[string]any
		want   string
	}{
		"nothing":   {deploy.Operator, nil, "image.repository: is required; give --set image.repository=VALUE, or a file with --values"},
		"no seed":   {deploy.Gardenlet, map[string]any{"image": image}, "gardenlet.seed: is required"},
		"misspelt":  {deploy.Operator, map[string]any{"image": image, "replica": 2}, "unknown value 'replica'; did you mean \"replicas\"?"},
		"seed":      {deploy.GardenletAccess, map[string]any{"gardenlet": map[string]any{"seed": "x/../a"}}, "gardenlet.seed: 'x/../a' does not match pattern"},
		"tag":       {deploy.Operator, map[string]any{"image": map[string]any{"repository": "pergola", "tag": "a b"}}, "image.tag: 'a b' does not match pattern"},
		"digest":    {deploy.Operator, map[string]any{"image": map[string]any{"repository": "pergola", "digest": "x@sha256:" + strings.Repeat("0", 64)}}, "image.digest: "},
		"account":   {deploy.Operator, map[string]any{"image": image, "serviceAccount": map[string]any{"name": "A b"}}, "serviceAccount.name: 'A b' does not match pattern"},
		"deeper":    {deploy.Operator, map[string]any{"image": image, "operator": map[string]any{"receivers": true}}, "operator: unknown value 'receivers' here; did you mean \"receiver\"?"},
		"type":      {deploy.Operator, map[string]any{"image": image, "replicas": "two"}, "replicas: must be of type integer, but is of type string"},
		"port":      {deploy.Operator, map[string]any{"image": image, "networkPolicy": map[string]any{"egress": map[string]any{"ports": []any{0}}}}, "networkPolicy.egress.ports.0: minimum: got 0, want 1"},
		"source":    {deploy.Operator, map[string]any{"image": image, "landscapes": []any{map[string]any{"name": "a", "spec": map[string]any{}}}}, "landscapes.0.spec: missing property 'source'"},
		"host":      {deploy.Operator, map[string]any{"image": image, "operator": map[string]any{"receiver": map[string]any{"ingress": map[string]any{"enabled": true}}}}, "operator.receiver.ingress.host: is required"},
		"proxy":     {deploy.Operator, map[string]any{"image": image, "operator": map[string]any{"receiver": map[string]any{"proxies": []any{"balancer"}}}}, "operator.receiver.proxies.0: 'balancer' does not match pattern"},
		"threshold": {deploy.Operator, map[string]any{"image": image, "monitoring": map[string]any{"thresholds": map[string]any{"failing": "soon"}}}, "monitoring.thresholds.failing: 'soon' does not match pattern"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := deploy.Render(deploy.Options{Role: c.role, Values: c.values})
			var invalid *deploy.ValuesError
			require.True(t, errors.As(err, &invalid), "%v", err)
			assert.Contains(t, err.Error(), c.want)
		})
	}
	_, err := deploy.ParseRole("scheduler")
	assert.EqualError(t, err, `role "scheduler" does not exist: want one of operator, gardenlet, gardenlet-access`)
}

// TestPodsAreRestricted: pods meet the restricted Pod Security Standard, and none runs as root.
func TestPodsAreRestricted(t *testing.T) {
	for _, role := range []deploy.Role{deploy.Operator, deploy.Gardenlet} {
		deployments := filterKind(renderRole(t, role).Objects, "Deployment")
		require.Len(t, deployments, 1)
		text := string(manifest(t, deployments))
		for _, want := range []string{"runAsNonRoot: true", "readOnlyRootFilesystem: true", "allowPrivilegeEscalation: false", "type: RuntimeDefault", "- ALL", "cpu: 100m", "livenessProbe:", "readinessProbe:"} {
			assert.Contains(t, text, want)
		}
		for _, forbidden := range []string{"hostNetwork", "hostPath", "privileged", "hostPort"} {
			assert.NotContains(t, text, forbidden)
		}
	}
}

// TestServerAcceptsEverything dry-runs everything that the chart can render on a real API server.
func TestServerAcceptsEverything(t *testing.T) {
	c := connectAs(t, "", nil)
	applyAsAdmin(t, c, renderRole(t, deploy.Operator).Definitions...)
	applyAsAdmin(t, c, foreignDefinitions()...)
	for _, role := range deploy.Roles() {
		for _, o := range renderRole(t, role, fullValues(t)).Objects {
			namespace(t, c, o.GetNamespace())
			err := sendObject(t, c, o, true)
			assert.False(t, apierrors.IsInvalid(err) || apierrors.IsBadRequest(err), "%s %s: %v", o.GetKind(), o.GetName(), err)
			assert.NoError(t, err, "%s %s", o.GetKind(), o.GetName())
		}
	}
}

// foreignDefinitions are CRDs of other projects; the test only needs them to exist.
func foreignDefinitions() []*unstructured.Unstructured {
	var out []*unstructured.Unstructured
	for kind, group := range map[string]string{"ServiceMonitor": "monitoring.coreos.com", "PrometheusRule": "monitoring.coreos.com", "VerticalPodAutoscaler": "autoscaling.k8s.io"} {
		plural := strings.ToLower(kind) + "s"
		out = append(out, &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": map[string]any{
				"name": plural + "." + group, "annotations": map[string]any{"api-approved.kubernetes.io": "unapproved, for a test"},
			},
			"spec": map[string]any{
				"group": group, "scope": "Namespaced", "names": map[string]any{"kind": kind, "plural": plural, "singular": strings.ToLower(kind), "listKind": kind + "List"},
				"versions": []any{map[string]any{"name": "v1", "served": true, "storage": true, "schema": map[string]any{
					"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true},
				}}},
			},
		}})
	}
	return out
}
