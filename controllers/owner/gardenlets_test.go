// SPDX-License-Identifier: Apache-2.0

package owner

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/pergola-dev/pergola/api/crds"
	"github.com/pergola-dev/pergola/render"
)

func TestVersionChangeOfAGardenlet(t *testing.T) {
	const digest = "sha256:0123456789012345678901234567890123456789012345678901234567890123"
	for name, c := range map[string]struct {
		named, want map[string]any
	}{
		"a reference":             {map[string]any{"ref": "registry.example.org/charts/gardenlet:v1.149.0"}, map[string]any{"ref": "registry.example.org/charts/gardenlet:v1.150.0"}},
		"of a registry at a port": {map[string]any{"ref": "oci://registry.example.org:5000/gardenlet:v1.149.0"}, map[string]any{"ref": "oci://registry.example.org:5000/gardenlet:v1.150.0"}},
		"a tag":                   {map[string]any{"repository": "registry.example.org/gardenlet", "tag": "v1.149.0"}, map[string]any{"tag": "v1.150.0"}},
		"a newer one":             {map[string]any{"repository": "registry.example.org/gardenlet", "tag": "v1.151.0"}, map[string]any{"tag": "v1.150.0"}},
		"the same":                {map[string]any{"ref": "registry.example.org/gardenlet:v1.150.0"}, nil},
		"a digest":                {map[string]any{"repository": "registry.example.org/gardenlet", "tag": "v1.149.0", "digest": digest}, nil},
		"a digest behind a tag":   {map[string]any{"ref": "registry.example.org/gardenlet:v1.149.0@" + digest}, nil},
		"no tag":                  {map[string]any{"repository": "registry.example.org/gardenlet"}, nil},
		"nothing that can be had": {map[string]any{"ref": "::"}, nil},
		"nothing":                 {nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			o := &unstructured.Unstructured{Object: map[string]any{}}
			require.NoError(t, unstructured.SetNestedMap(o.Object, c.named, "spec", "deployment", "helm", "ociRepository"))
			assert.Equal(t, c.want, versionChange(o, "v1.150.0"))
		})
	}
}

// TestGardenletsGetTheVersionOfTheGarden checks that only Gardenlets with the auto-update label get
// the version of the garden.
func TestGardenletsGetTheVersionOfTheGarden(t *testing.T) {
	s := newGarden(t)
	_, err := envtest.InstallCRDs(server.config, envtest.CRDInstallOptions{CRDs: []*apiextensionsv1.CustomResourceDefinition{crds.Get("seedmanagement.gardener.cloud", "Gardenlet")}})
	require.NoError(t, err)
	o := s.run.owner
	o.Local.ResetMapping()
	o.Target = o.Local
	b := s.bundle(true, s.object("{apiVersion: v1, kind: ConfigMap, metadata: {name: gardener-info, namespace: NS}, data: {gardenerAPIServer: \"version: v1.150.0\\nworkloadIdentityIssuerURL: x\\n\"}}"))
	b.Cluster = render.ClusterVirtual
	o.state.bundles = []render.Bundle{b}
	mapping, err := o.Target.Mapping(s.ctx, s.object("{apiVersion: seedmanagement.gardener.cloud/v1alpha1, kind: Gardenlet}").GroupVersionKind())
	require.NoError(t, err)
	gardenlets := s.api.Resource(mapping.Resource).Namespace(s.ns)
	for name, label := range map[string]string{"asks": `labels: {operator.gardener.cloud/auto-update-gardenlet-helm-chart-ref: "true"}, `,
		"refuses": `labels: {operator.gardener.cloud/auto-update-gardenlet-helm-chart-ref: "false"}, `, "silent": ""} {
		_, err := gardenlets.Create(s.ctx, s.object(`{apiVersion: seedmanagement.gardener.cloud/v1alpha1, kind: Gardenlet, metadata: {`+label+`name: `+name+`, namespace: NS},
			spec: {deployment: {helm: {ociRepository: {ref: "registry.example.org/gardenlet:v1.149.0"}}}}}`), metav1.CreateOptions{})
		require.NoError(t, err)
	}
	versions := func() map[string]string {
		list, err := gardenlets.List(s.ctx, metav1.ListOptions{})
		require.NoError(t, err)
		out := map[string]string{}
		for _, g := range list.Items {
			out[g.GetName()], _, _ = unstructured.NestedString(g.Object, "spec", "deployment", "helm", "ociRepository", "ref")
		}
		return out
	}
	before := versions()
	o.state.bundles = nil
	require.NoError(t, s.run.updateGardenlets(s.ctx))
	assert.Equal(t, before, versions(), "a garden that does not say its version")
	o.state.bundles = []render.Bundle{b}
	require.NoError(t, s.run.updateGardenlets(s.ctx))
	after := map[string]string{"asks": "registry.example.org/gardenlet:v1.150.0", "refuses": "registry.example.org/gardenlet:v1.149.0", "silent": "registry.example.org/gardenlet:v1.149.0"}
	assert.Equal(t, after, versions())
	require.NoError(t, s.run.updateGardenlets(s.ctx))
	assert.Equal(t, after, versions())
	asks, err := gardenlets.Get(s.ctx, "asks", metav1.GetOptions{})
	require.NoError(t, err)
	assert.Equal(t, int64(2), asks.GetGeneration(), "once")
	by := ""
	for _, f := range asks.GetManagedFields() {
		by += f.Manager + " "
	}
	assert.Contains(t, by, "gardener-operator", "a controller, to which Git hands the field over")
}
