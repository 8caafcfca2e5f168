// SPDX-License-Identifier: Apache-2.0

package render

import (
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/pergola-dev/pergola/api/crds"
	"github.com/pergola-dev/pergola/hack/apiserver"
)

// clusterBundles is a component with a bundle for each cluster of an owner.
func clusterBundles(clusters ...string) string {
	var out strings.Builder
	out.WriteString("package component\n\ncomponent: bundles: {\n")
	for _, c := range clusters {
		class := ""
		if c == ClusterSeed || c == ClusterRuntime {
			class = `class: "seed", `
		}
		out.WriteString("\t" + c + `: {cluster: "` + c + `", ` + class + `namespace: owner.controlPlaneNamespace, source: cue: [{apiVersion: "v1", kind: "ConfigMap", metadata: {name: "first-` + c + `", namespace: "own"}}]}` + "\n")
	}
	return out.String() + "}\n"
}

// renderWithAddedObject renders a component with an overlay that adds an object to a bundle.
func renderWithAddedObject(t *testing.T, owner Owner, bundle, object string) (Result, error) {
	t.Helper()
	clusters := map[string][]string{"garden": {ClusterRuntime, ClusterVirtual}, "seed": {ClusterSeed}, "shoot": {ClusterSeed, ClusterShoot}}[owner.Kind]
	in := gardenInput()
	in.Owner = owner
	object = strings.Replace(object, "metadata: {", "metadata: {annotations: {render.pergola.dev/bundle: "+bundle+"}, ", 1)
	return Render(in, Options{
		Catalogue: smallCatalogue(t, map[string]string{owner.Kind + "/app/component.cue": clusterBundles(clusters...)}),
		Overlays: []Overlay{{Component: owner.Kind + "/app", Dir: "app", Name: "components/" + owner.Kind + "/app",
			FS: fstest.MapFS{"app/kustomization.yaml": {Data: []byte("resources: [more.yaml]\n")}, "app/more.yaml": {Data: []byte(object)}}}},
	})
}

// TestObjectsWithoutNamespace: in a shared cluster an object gets the namespace of its bundle, in a
// cluster of the owner upstream's default.
func TestObjectsWithoutNamespace(t *testing.T) {
	const custom = "{apiVersion: example.org/v1, kind: Thing, metadata: {name: x}}"
	owners := map[string]Owner{
		"garden": {Kind: "garden", Name: "g", ControlPlaneNamespace: "garden"},
		"seed":   {Kind: "seed", Name: "s", ControlPlaneNamespace: "garden"},
		"shoot":  {Kind: "shoot", Namespace: "garden-dev", Name: "a", ControlPlaneNamespace: "shoot--dev--a"},
	}
	for name, tt := range map[string]struct{ owner, bundle, object, want, err string }{
		"of a Shoot, in its seed":        {"shoot", "seed", "{apiVersion: v1, kind: ConfigMap, metadata: {name: x}}", "shoot--dev--a", ""},
		"of our API":                     {"shoot", "seed", "{apiVersion: extensions.gardener.cloud/v1alpha1, kind: Extension, metadata: {name: x}, spec: {type: x}}", "shoot--dev--a", ""},
		"of an API of the catalogue":     {"shoot", "seed", "{apiVersion: autoscaling.k8s.io/v1, kind: VerticalPodAutoscaler, metadata: {name: x}}", "shoot--dev--a", ""},
		"its own namespace, by name":     {"shoot", "seed", "{apiVersion: v1, kind: ConfigMap, metadata: {name: x, namespace: shoot--dev--a}}", "shoot--dev--a", ""},
		"its own by its name":            {"shoot", "seed", "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: shoot--dev--a-x}}", "", ""},
		"of a Shoot, in it":              {"shoot", "shoot", "{apiVersion: v1, kind: ConfigMap, metadata: {name: x}}", "default", ""},
		"without one in the Shoot":       {"shoot", "shoot", "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: x}}", "", ""},
		"of a Seed":                      {"seed", "seed", "{apiVersion: v1, kind: ConfigMap, metadata: {name: x}}", "garden", ""},
		"of a Seed, no namespace":        {"seed", "seed", "{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: x}, value: 1}", "", ""},
		"of a Seed, not known":           {"seed", "seed", custom, "", ""},
		"of a Seed, defined beside it":   {"seed", "seed", custom + "\n---\n{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: things.example.org, annotations: {render.pergola.dev/bundle: seed}}, spec: {group: example.org, scope: Namespaced, names: {kind: Thing, plural: things}, versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]}}", "garden", ""},
		"of a Seed, another namespace":   {"seed", "seed", "{apiVersion: v1, kind: ConfigMap, metadata: {name: x, namespace: other}}", "other", ""},
		"of the Garden, in the runtime":  {"garden", "runtime", "{apiVersion: v1, kind: ConfigMap, metadata: {name: x}}", "garden", ""},
		"of the Garden, in the virtual":  {"garden", "virtual", "{apiVersion: v1, kind: ConfigMap, metadata: {name: x}}", "default", ""},
		"one for all Shoots":             {"shoot", "seed", "{apiVersion: v1, kind: ConfigMap, metadata: {name: x, namespace: other}}", "", "in namespace other for every Shoot, but only one Shoot of a seed can have this object; remove metadata.namespace"},
		"one for all, without namespace": {"shoot", "seed", "{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: x}, value: 1}", "", "only one Shoot of a seed can have this object; declare it once for the Seed, in components/seed/"},
		"one for all, not known":         {"shoot", "seed", custom, "", "or copy the namespace of an object of the component by a replacement"},
	} {
		t.Run(name, func(t *testing.T) {
			res, err := renderWithAddedObject(t, owners[tt.owner], tt.bundle, tt.object)
			if tt.err != "" {
				require.ErrorContains(t, err, "components/shoot/app/more.yaml:1:1: the overlay adds ")
				require.ErrorContains(t, err, tt.err)
				return
			}
			require.NoError(t, err)
			kind := strings.Fields(strings.SplitAfter(tt.object, "kind: ")[1])[0]
			found := 0
			for _, b := range res.Bundles {
				for _, o := range b.Objects {
					if o.GetKind() == strings.Trim(kind, ",") && strings.HasSuffix(o.GetName(), "x") {
						assert.Equal(t, tt.want, o.GetNamespace())
						found++
					}
				}
			}
			assert.Equal(t, 1, found)
		})
	}
}

// TestAddedObjectExists: an object without a namespace in an overlay is the same as the
// component's object there.
func TestAddedObjectExists(t *testing.T) {
	owner := Owner{Kind: "seed", Name: "s", ControlPlaneNamespace: "own"}
	_, err := renderWithAddedObject(t, owner, "seed", "{apiVersion: v1, kind: ConfigMap, metadata: {name: first-seed}}")
	require.ErrorContains(t, err, "components/seed/app/more.yaml:1:1: the overlay adds ConfigMap first-seed, which is in bundle seed already (components/seed/app/component.cue:4): patch that one")
}

// TestScopesMatchServer: the scopes of kinds are those of an API server.
func TestScopesMatchServer(t *testing.T) {
	client, err := discovery.NewDiscoveryClientForConfig(apiserver.Start(t))
	require.NoError(t, err)
	lists, err := client.ServerPreferredResources()
	require.NoError(t, err)
	checked := 0
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		require.NoError(t, err)
		for _, r := range list.APIResources {
			gvk := gv.WithKind(r.Kind)
			if strings.Contains(r.Name, "/") {
				continue
			}
			namespaced, known := isNamespaced(gvk)
			assert.True(t, known, gvk)
			assert.Equal(t, r.Namespaced, namespaced, gvk)
			checked++
		}
	}
	assert.Greater(t, checked, 50)
	ours := map[schema.GroupKind]bool{}
	for _, crd := range crds.All() {
		gk := schema.GroupKind{Group: crd.Spec.Group, Kind: crd.Spec.Names.Kind}
		namespaced, known := isNamespaced(gk.WithVersion("v1"))
		assert.True(t, known, gk)
		assert.Equal(t, crd.Spec.Scope == apiextensionsv1.NamespaceScoped, namespaced, gk)
		ours[gk] = true
	}
	for _, b := range renderedVariants["local"](t).bundles() {
		for gk := range definedScopes(b.Objects) {
			ours[gk] = true
		}
	}
	// kinds that this server does not serve exist as types
	for group, kinds := range clusterScoped {
		for _, kind := range kinds {
			known := kind == "*" || ours[schema.GroupKind{Group: group, Kind: kind}] || slices.ContainsFunc(scheme.Scheme.PrioritizedVersionsForGroup(group), func(gv schema.GroupVersion) bool {
				return scheme.Scheme.Recognizes(gv.WithKind(kind))
			})
			assert.True(t, known, "%s in group %q is no kind", kind, group)
		}
	}
}
