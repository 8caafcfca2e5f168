// SPDX-License-Identifier: Apache-2.0

package render

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestFilesLayout(t *testing.T) {
	res, err := renderSmall(t, map[string]string{"garden/app/component.cue": `package component

component: {
	condition: "Healthy"
	secrets: server: kind: "certificate"
	bundles: {
		app: {cluster: "runtime", class: "seed", source: cue: [` + oneConfigMap + `, {apiVersion: "rbac.authorization.k8s.io/v1", kind: "ClusterRole", metadata: name: "system:app:x"}]}
		inner: {cluster: "virtual", direct: true, namespace: "kube-system", source: cue: [{apiVersion: "apps/v1", kind: "Deployment", metadata: {name: facts.secrets.server.name, namespace: "n"}, spec: {selector: matchLabels: a: "b", template: {metadata: labels: a: "b", spec: containers: [{name: "c", image: "i"}]}}}]}
	}
}
`})
	require.NoError(t, err)
	files, err := BundleFiles(res.Bundles, func(b Bundle) string { return "cluster-" + b.Cluster })
	require.NoError(t, err)
	assert.Equal(t, []string{
		"cluster-runtime/garden/app/bundle.yaml",
		"cluster-runtime/garden/app/clusterrole.rbac.authorization.k8s.io-system_app_x.yaml",
		"cluster-runtime/garden/app/configmap-garden-a.yaml",
		"cluster-virtual/kube-system/inner/bundle.yaml",
		"cluster-virtual/kube-system/inner/deployment-n-server-XXXXXXXX.yaml",
	}, sortedKeys(files))
	assert.Equal(t, "apiVersion: v1\ndata:\n  x: \"y\"\nkind: ConfigMap\nmetadata:\n  name: a\n  namespace: garden\n", string(files["cluster-runtime/garden/app/configmap-garden-a.yaml"]))
	assert.Equal(t, `component: garden/app
condition: Healthy
delivery:
  class: seed
digest:
  resolved: `+res.Bundles[0].Digest.Resolved+`
name: app
namespace: garden
objects:
  - 'clusterrole.rbac.authorization.k8s.io-system_app_x.yaml  # components/garden/app/component.cue:7'
  - 'configmap-garden-a.yaml  # components/garden/app/component.cue:7'
owner: garden local
`, string(files["cluster-runtime/garden/app/bundle.yaml"]))
	assert.Contains(t, string(files["cluster-virtual/kube-system/inner/bundle.yaml"]), "unresolved:\n  - secret server\n")
}

// TestFilesOfShoots: paths use the control planes of Shoots, not their names.
func TestFilesOfShoots(t *testing.T) {
	in := func(name string) Bundle {
		return Bundle{Name: "app", Cluster: ClusterShoot, Namespace: "shoot--" + name, Owner: Owner{Kind: "shoot", Namespace: "garden-dev", Name: name}}
	}
	files, err := BundleFiles([]Bundle{in("a"), in("b")}, ClusterNamer(nil))
	require.NoError(t, err)
	assert.Equal(t, []string{"shoot/shoot--a/app/bundle.yaml", "shoot/shoot--b/app/bundle.yaml"}, sortedKeys(files))
}

func TestFilesThatWouldCollide(t *testing.T) {
	object := func(name string) Object {
		return Object{Unstructured: &unstructured.Unstructured{Object: map[string]any{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": map[string]any{"name": name}}}}
	}
	_, err := BundleFiles([]Bundle{{Name: "app", Owner: Owner{Kind: "garden", Name: "g"}, Objects: []Object{object("a:b"), object("a_b")}}}, func(Bundle) string { return "c" })
	require.EqualError(t, err, "bundle garden g/app: two objects would be written to c/app/clusterrole.rbac.authorization.k8s.io-a_b.yaml")
}

func TestObjectFile(t *testing.T) {
	for want, o := range map[string][3]string{
		"service-a-b.yaml":                        {"v1", "Service", "a/b"},
		"deployment-a-b.yaml":                     {"apps/v1", "Deployment", "a/b"},
		"etcd.druid.gardener.cloud-a-b.yaml":      {"druid.gardener.cloud/v1alpha1", "Etcd", "a/b"},
		"clusterrole.rbac.x.io-system_admin.yaml": {"rbac.x.io/v1", "ClusterRole", "/system:admin"},
	} {
		obj := &unstructured.Unstructured{Object: map[string]any{"apiVersion": o[0], "kind": o[1]}}
		ns, name, _ := splitReference(o[2])
		obj.SetName(name)
		if ns != "" {
			obj.SetNamespace(ns)
		}
		assert.Equal(t, want, ObjectFile(Object{Unstructured: obj}))
	}
}
