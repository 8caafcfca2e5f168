// SPDX-License-Identifier: Apache-2.0

package crds_test

import (
	"context"
	"encoding/json"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensionsvalidation "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	gardencorev1 "github.com/pergola-dev/pergola/api/core/v1"
	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
	"github.com/pergola-dev/pergola/api/crds"
	druidv1alpha1 "github.com/pergola-dev/pergola/api/druid/v1alpha1"
	extensionsv1alpha1 "github.com/pergola-dev/pergola/api/extensions/v1alpha1"
	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	operationsv1alpha1 "github.com/pergola-dev/pergola/api/operations/v1alpha1"
	operatorv1alpha1 "github.com/pergola-dev/pergola/api/operator/v1alpha1"
	resourcesv1alpha1 "github.com/pergola-dev/pergola/api/resources/v1alpha1"
	securityv1alpha1 "github.com/pergola-dev/pergola/api/security/v1alpha1"
	seedmanagementv1alpha1 "github.com/pergola-dev/pergola/api/seedmanagement/v1alpha1"
)

// maxDefinitionSize limits a file to half of etcd's maximum request size, 1.5 MiB: server-side
// apply stores a definition about twice (object and field ownership).
const maxDefinitionSize = 700 << 10

func newScheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		gardencorev1.AddToScheme, gardencorev1beta1.AddToScheme, druidv1alpha1.AddToScheme, extensionsv1alpha1.AddToScheme,
		landscapev1alpha1.AddToScheme, operatorv1alpha1.AddToScheme, resourcesv1alpha1.AddToScheme,
		operationsv1alpha1.AddToScheme, securityv1alpha1.AddToScheme, seedmanagementv1alpha1.AddToScheme,
	} {
		require.NoError(t, add(scheme))
	}
	return scheme
}

// TestDefinitionsAreAcceptedByTheAPIServer runs the API server's own validation: names, structural
// schemas, defaults, CEL rules and their cost.
func TestDefinitionsAreAcceptedByTheAPIServer(t *testing.T) {
	for _, crd := range crds.All() {
		t.Run(crd.Name, func(t *testing.T) {
			errs := apiextensionsvalidation.ValidateCustomResourceDefinition(context.Background(), toInternalDefinition(t, crd))
			assert.Empty(t, errs)
		})
	}
}

func TestDefinitionsFitInEtcd(t *testing.T) {
	for name, manifest := range crds.Manifests("") {
		assert.Less(t, len(manifest), maxDefinitionSize, name)
	}
}

// TestDefinitionsMatchTheTypes checks that each root type has a definition and the reverse, so that
// typed and dynamic clients see the same API.
func TestDefinitionsMatchTheTypes(t *testing.T) {
	scheme := newScheme(t)
	defined := map[schema.GroupVersionKind]bool{}
	for _, crd := range crds.All() {
		for _, version := range crd.Spec.Versions {
			gvk := schema.GroupVersionKind{Group: crd.Spec.Group, Version: version.Name, Kind: crd.Spec.Names.Kind}
			defined[gvk] = true
			assert.True(t, scheme.Recognizes(gvk), "%s has no Go type", gvk)
			assert.True(t, scheme.Recognizes(gvk.GroupVersion().WithKind(crd.Spec.Names.ListKind)), "%s has no list type", gvk)
		}
	}
	for gvk := range scheme.AllKnownTypes() {
		own := strings.HasSuffix(gvk.Group, ".gardener.cloud") || gvk.Group == landscapev1alpha1.GroupName
		if !own || gvk.Version == runtime.APIVersionInternal || strings.HasSuffix(gvk.Kind, "List") || isMetaKind(gvk.Kind) {
			continue
		}
		assert.True(t, defined[gvk], "%s has no definition", gvk)
	}
}

// isMetaKind reports whether metav1.AddToGroupVersion adds the kind to every group.
func isMetaKind(kind string) bool {
	return kind == "WatchEvent" || kind == "DeleteOptions" || strings.HasSuffix(kind, "Options")
}

func TestScopesAndSubresources(t *testing.T) {
	clusterScoped := []string{
		"backupbuckets.core", "cloudprofiles.core", "controllerdeployments.core", "controllerinstallations.core", "controllerregistrations.core",
		"exposureclasses.core", "projects.core", "seeds.core", "gardens.operator", "extensions.operator",
		"backupbuckets.extensions", "backupentries.extensions", "clusters.extensions",
	}
	// Upstream's kinds without a status.
	withoutStatus := []string{
		"controllerdeployments.core", "controllerregistrations.core", "exposureclasses.core", "internalsecrets.core", "quotas.core",
		"secretbindings.core", "shootstates.core", "credentialsbindings.security",
	}
	for _, crd := range crds.All() {
		name := strings.TrimSuffix(crd.Name, ".gardener.cloud")
		assert.Equal(t, slices.Contains(clusterScoped, name), crd.Spec.Scope == apiextensionsv1.ClusterScoped, "scope of %s", name)
		for _, version := range crd.Spec.Versions {
			hasStatus := version.Subresources != nil && version.Subresources.Status != nil
			assert.Equal(t, !slices.Contains(withoutStatus, name), hasStatus, "status of %s", name)
		}
	}
}

// TestFieldsAreDocumented checks that every field that a landscape can declare has a description
// for `pergola explain`.
func TestFieldsAreDocumented(t *testing.T) {
	for _, crd := range crds.All() {
		if crd.Spec.Group == druidv1alpha1.GroupName {
			continue // documented by its own project; not declared in landscapes
		}
		for _, version := range crd.Spec.Versions {
			for name, part := range version.Schema.OpenAPIV3Schema.Properties {
				if name != "metadata" && (crd.Spec.Group != extensionsv1alpha1.GroupName || name != "status") {
					assertDocumented(t, crd.Spec.Names.Kind+"."+name, part)
				}
			}
		}
	}
}

func assertDocumented(t *testing.T, path string, props apiextensionsv1.JSONSchemaProps) {
	t.Helper()
	if strings.HasSuffix(path, ".metadata") {
		return // generated for objects within objects, without documentation
	}
	assert.NotEmpty(t, props.Description, path)
	for name, property := range props.Properties {
		assertDocumented(t, path+"."+name, property)
	}
	if props.Items != nil && props.Items.Schema != nil {
		for name, property := range props.Items.Schema.Properties {
			assertDocumented(t, path+"[]."+name, property)
		}
	}
}

// TestListTypes checks list types, which decide how server-side apply merges. Without
// one, an apply would replace a whole list of objects.
func TestListTypes(t *testing.T) {
	for _, crd := range crds.All() {
		for _, version := range crd.Spec.Versions {
			walkSchema(crd.Spec.Names.Kind, *version.Schema.OpenAPIV3Schema, func(path string, props apiextensionsv1.JSONSchemaProps) {
				if props.Type != "array" || isListOfKubernetesType(path) {
					return
				}
				assert.NotNil(t, props.XListType, "%s has no list type", path)
			})
		}
	}
}

// isListOfKubernetesType reports whether the list is inside a type of Kubernetes, which decides on
// its list types.
func isListOfKubernetesType(path string) bool {
	for _, part := range []string{
		"elector.", ".affinity.", ".topologySpreadConstraints[]", ".resources.claims", ".ipBlock.except", ".defaultProjectQuotas[].config.",
		".equivalences[]", ".metadata.finalizers", ".ingress[].ports", ".ingress.ports", ".capabilities.*", ".capabilityFlavors[].*",
	} {
		if strings.Contains(path, part) {
			return true
		}
	}
	return false
}

func walkSchema(path string, props apiextensionsv1.JSONSchemaProps, visit func(string, apiextensionsv1.JSONSchemaProps)) {
	visit(path, props)
	for name, property := range props.Properties {
		walkSchema(path+"."+name, property, visit)
	}
	if props.Items != nil && props.Items.Schema != nil {
		walkSchema(path+"[]", *props.Items.Schema, visit)
	}
	if props.AdditionalProperties != nil && props.AdditionalProperties.Schema != nil {
		walkSchema(path+".*", *props.AdditionalProperties.Schema, visit)
	}
}

func TestByGroup(t *testing.T) {
	kinds := func(list []*apiextensionsv1.CustomResourceDefinition) []string {
		var names []string
		for _, crd := range list {
			names = append(names, crd.Spec.Names.Kind)
		}
		return names
	}
	assert.Equal(t, []string{"CredentialsBinding", "WorkloadIdentity"}, kinds(crds.ByGroup("security.gardener.cloud")))
	assert.Len(t, crds.ByGroup("core.gardener.cloud"), 15)
	assert.Equal(t, []string{"Extension", "Garden"}, kinds(crds.ByGroup("operator.gardener.cloud")))
	assert.Empty(t, crds.ByGroup("gardener.cloud"), "a group is named in full")
	assert.Empty(t, crds.ByGroup("*"))
	assert.Empty(t, crds.ByGroup(""))
	assert.Nil(t, crds.Get("core.gardener.cloud", "Garden"))

	files, err := fs.Glob(crds.FS, "*.yaml")
	require.NoError(t, err)
	assert.Len(t, crds.All(), len(files))
	assert.Len(t, crds.Manifests("extensions.gardener.cloud"), len(crds.ByGroup("extensions.gardener.cloud")))
}

func TestCallersDoNotShareDefinitions(t *testing.T) {
	crds.All()[0].Name = "changed"
	assert.NotEqual(t, "changed", crds.All()[0].Name)
}

// TestDefinitionsRoundTrip checks that reading and writing a definition neither adds nor drops
// fields. Otherwise every apply would change it again.
func TestDefinitionsRoundTrip(t *testing.T) {
	for _, crd := range crds.All() {
		data, err := json.Marshal(crd)
		require.NoError(t, err)
		again := &apiextensionsv1.CustomResourceDefinition{}
		require.NoError(t, json.Unmarshal(data, again))
		assert.Equal(t, crd, again)
	}
}
