// SPDX-License-Identifier: Apache-2.0

package render

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	jsonserializer "k8s.io/apimachinery/pkg/runtime/serializer/json"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"

	"github.com/pergola-dev/pergola/api/crds"
)

// TestObjectsAreStrictlyTyped decodes every rendered object like an API server with strict field
// validation. Kubernetes' own kinds use their Go types, all others the definitions in the
// catalogue. A misspelt field, or a number instead of text, fails here.
func TestObjectsAreStrictlyTyped(t *testing.T) {
	scheme := runtime.NewScheme()
	require.NoError(t, clientgoscheme.AddToScheme(scheme))
	require.NoError(t, apiextensionsv1.AddToScheme(scheme))
	decoder := jsonserializer.NewSerializerWithOptions(jsonserializer.DefaultMetaFactory, scheme, scheme, jsonserializer.SerializerOptions{Strict: true})
	// The second has kinds that are installed only if needed.
	definitions := definitionsOf(t, slices.Concat(renderedVariants["local"](t).bundles(), renderedVariants["highly available"](t).bundles()))
	eachVariant(t, func(t *testing.T, v variantResult) {
		for _, b := range v.bundles() {
			for _, o := range b.Objects {
				gvk := o.GroupVersionKind()
				if gvk.Group == "apiregistration.k8s.io" {
					continue // its types are in a module that only this test would need
				}
				if !scheme.Recognizes(gvk) {
					definition, ok := definitions[gvk]
					if !assert.True(t, ok, "%s: %s is known by no definition", describeObject(b, o), gvk) {
						continue
					}
					for _, problem := range definition.check(o.DeepCopy().Object) {
						t.Errorf("%s: %s", describeObject(b, o), problem)
					}
					continue
				}
				raw, err := json.Marshal(o.Object)
				require.NoError(t, err)
				_, _, err = decoder.Decode(raw, nil, nil)
				assert.NoError(t, err, describeObject(b, o))
			}
		}
	})
}

// TestStrictDecodingFindsTypos proves that the test above can fail.
func TestStrictDecodingFindsTypos(t *testing.T) {
	definitions := definitionsOf(t, renderedVariants["local"](t).bundles())
	for kind, content := range map[string]string{
		"etcd":       `{"apiVersion":"druid.gardener.cloud/v1alpha1","kind":"Etcd","metadata":{"name":"x"},"spec":{"replicsa":1,"selector":{},"labels":{},"etcd":{},"backup":{},"replicas":1}}`,
		"autoscaler": `{"apiVersion":"autoscaling.k8s.io/v1","kind":"VerticalPodAutoscaler","metadata":{"name":"x"},"spec":{"targetRef":{"apiVersion":"apps/v1","kind":"Deployment","name":7}}}`,
	} {
		var object map[string]any
		require.NoError(t, json.Unmarshal([]byte(content), &object))
		gv, err := schema.ParseGroupVersion(object["apiVersion"].(string))
		require.NoError(t, err)
		definition, ok := definitions[gv.WithKind(object["kind"].(string))]
		require.True(t, ok, kind)
		assert.NotEmpty(t, definition.check(object), kind)
	}
}

// definition checks objects of one version of a custom kind.
type definition struct {
	structural *structuralschema.Structural
	validator  validation.SchemaValidator
}

// check lists unknown fields, and values of the wrong type, format or range.
func (d definition) check(object map[string]any) []string {
	var out []string
	unknown := pruning.PruneWithOptions(object, d.structural, true, structuralschema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})
	for _, path := range unknown {
		out = append(out, "unknown field "+path)
	}
	for _, err := range validation.ValidateCustomResource(nil, object, d.validator) {
		out = append(out, err.Error())
	}
	return out
}

// definitionsOf reads the CustomResourceDefinitions of rendered objects and of our API.
func definitionsOf(t *testing.T, bundles []Bundle) map[schema.GroupVersionKind]definition {
	t.Helper()
	all := crds.All()
	for _, b := range bundles {
		for _, o := range b.Objects {
			if o.GetKind() == "CustomResourceDefinition" {
				crd := &apiextensionsv1.CustomResourceDefinition{}
				require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, crd))
				all = append(all, crd)
			}
		}
	}
	out := map[schema.GroupVersionKind]definition{}
	for _, crd := range all {
		for _, version := range crd.Spec.Versions {
			require.NotNil(t, version.Schema, crd.Name)
			internal := &apiextensions.JSONSchemaProps{}
			require.NoError(t, apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(version.Schema.OpenAPIV3Schema, internal, nil))
			structural, err := structuralschema.NewStructural(internal)
			require.NoError(t, err, "%s/%s", crd.Name, version.Name)
			validator, _, err := validation.NewSchemaValidator(internal)
			require.NoError(t, err, "%s/%s", crd.Name, version.Name)
			out[schema.GroupVersionKind{Group: crd.Spec.Group, Version: version.Name, Kind: crd.Spec.Names.Kind}] = definition{structural, validator}
		}
	}
	return out
}

// TestObjectsHaveNamespaces: objects of the catalogue are in the namespace of their component,
// and all kinds have a known scope.
func TestObjectsHaveNamespaces(t *testing.T) {
	eachVariant(t, func(t *testing.T, v variantResult) {
		for _, b := range v.bundles() {
			for gk, scope := range definedScopes(b.Objects) {
				namespaced, known := isNamespaced(gk.WithVersion("v1"))
				assert.Equal(t, []bool{scope, true}, []bool{namespaced, known}, "the catalogue defines %s", gk)
			}
			for _, o := range b.Objects {
				namespaced, known := isNamespaced(o.GroupVersionKind())
				assert.True(t, known, "%s: the scope of its kind is not known", describeObject(b, o))
				assert.Equal(t, namespaced, o.GetNamespace() != "", "%s: namespace %q", describeObject(b, o), o.GetNamespace())
				assert.NotEqual(t, "default", o.GetNamespace(), "%s: its component names no namespace", describeObject(b, o))
				assert.LessOrEqual(t, len(o.GetName()), 253, describeObject(b, o))
				assert.Equal(t, strings.ToLower(strings.ReplaceAll(o.GetName(), symbolicMark, "")), strings.ReplaceAll(o.GetName(), symbolicMark, ""), describeObject(b, o))
			}
		}
	})
}
