// SPDX-License-Identifier: Apache-2.0

package golden

import (
	"bytes"
	"maps"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	yamlv3 "go.yaml.in/yaml/v3"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/pergola-dev/pergola/api/crds"
	"github.com/pergola-dev/pergola/hack/testselection"
)

// fieldCase lists exactly the objects that another value of a field changes.
type fieldCase struct {
	// Field of the declaration; list elements are written [].
	Field string `yaml:"field"`
	// Value is the other value. For a field in a list, Set has the fields to merge onto the
	// declaration, with the whole list.
	Value any            `yaml:"value"`
	Set   map[string]any `yaml:"set"`
	// With has fields that the field requires, merged onto the declaration before and after.
	With map[string]any `yaml:"with"`
	// GardenAPI is the mode of the landscape; default crd.
	GardenAPI string `yaml:"gardenAPI"`
	// Changes are objects, as "<cluster> <Kind> <namespace>/<name>", and requests to the secrets
	// manager, as "secret <name>".
	Changes []string `yaml:"changes"`
	// Refused is the rule that forbids the other value.
	Refused string `yaml:"refused"`
	// Unread explains why the field does not affect the rendering.
	Unread string `yaml:"unread"`
}

// TestFieldsOfTheGarden checks that another value of each Garden field changes exactly the objects
// in testdata/garden-fields.yaml. An API field that is missing there fails. PERGOLA_FIELDS_ALONE=1
// renders each case alone.
func TestFieldsOfTheGarden(t *testing.T) {
	var cases []fieldCase
	data, err := os.ReadFile("testdata/garden-fields.yaml")
	require.NoError(t, err)
	decoder := yamlv3.NewDecoder(bytes.NewReader(data))
	decoder.KnownFields(true)
	require.NoError(t, decoder.Decode(&cases))

	listed := map[string]bool{}
	for _, c := range cases {
		listed[c.Field] = true
	}
	var tried []fieldCase
	for n := range testselection.Points(t) {
		if n > len(cases) {
			break
		}
		tried = append(tried, cases[n-1])
	}
	cases = tried
	got, problems := changesOf(t.Context(), cases)
	for i, c := range cases {
		t.Run(c.Field, func(t *testing.T) {
			if c.Refused != "" {
				require.ErrorContains(t, problems[i], "["+c.Refused+"]")
				return
			}
			require.NoError(t, problems[i])
			assert.Equal(t, len(c.Changes) == 0, c.Unread != "", "either it changes something, or unread says why it does not")
			want := append([]string{}, c.Changes...)
			slices.Sort(want)
			assert.Equal(t, want, got[i])
		})
	}
	for _, field := range leavesOf(t, "operator.gardener.cloud_gardens.yaml") {
		assert.True(t, listed[field], "%s is not in testdata/garden-fields.yaml", field)
		delete(listed, field)
	}
	assert.Empty(t, listed, "fields that the API does not have")
}

// TestWronglyUnreadFields: a case that wrongly claims to be unread is found, and does not
// fail the cases that share its declaration.
func TestWronglyUnreadFields(t *testing.T) {
	cases := []fieldCase{
		{Field: "spec.runtimeCluster.networking.blockCIDRs", Value: []any{"169.254.169.254/32"}, Unread: "x"},
		{Field: "spec.virtualCluster.kubernetes.kubeAPIServer.eventTTL", Value: "7h", Unread: "x"},
		{Field: "spec.runtimeCluster.networking.nodes", Value: []any{"172.19.0.0/24"}, Unread: "x"},
		{Field: "spec.runtimeCluster.networking.nodes", Value: []any{"172.20.0.0/24"}, Unread: "x"},
	}
	assert.True(t, cases[0].canShareRender(cases[1]))
	assert.False(t, cases[2].canShareRender(cases[3]), "the same field")
	got, problems := changesOf(t.Context(), cases)
	assert.Equal(t, [][]string{{}, {"runtime Deployment garden/virtual-garden-kube-apiserver"}, {}, {}}, got)
	assert.Equal(t, make([]error, 4), problems)
}

// externals are references of the other values, and offered is an extension of their type.
var (
	externals = []any{
		map[string]any{"kind": "Secret", "namespace": "garden", "name": "*"}, map[string]any{"kind": "ConfigMap", "namespace": "garden", "name": "*"},
	}
	exampleExtension = map[string]any{
		"apiVersion": "operator.gardener.cloud/v1alpha1", "kind": "Extension", "metadata": map[string]any{"name": "foobar"},
		"spec": map[string]any{"deployment": map[string]any{"extension": map[string]any{"helm": map[string]any{"ociRepository": map[string]any{"ref": "registry.example.org/foobar:v1"}}}}, "resources": []any{map[string]any{"kind": "Extension", "type": "foobar", "clusterCompatibility": []any{"garden"}}}},
	}
)

// mergeMaps merges one map onto another; lists are replaced.
func mergeMaps(under, over map[string]any) map[string]any {
	out := maps.Clone(under)
	for key, value := range over {
		inner, isMap := value.(map[string]any)
		below, wasMap := out[key].(map[string]any)
		if isMap && wasMap {
			value = mergeMaps(below, inner)
		}
		out[key] = value
	}
	return out
}

// leavesOf returns the fields below spec of a definition that have no subfields.
func leavesOf(t *testing.T, file string) []string {
	t.Helper()
	raw, err := crds.FS.ReadFile(file)
	require.NoError(t, err)
	var definition apiextensionsv1.CustomResourceDefinition
	require.NoError(t, yaml.Unmarshal(raw, &definition))
	var out []string
	var walk func(path string, s apiextensionsv1.JSONSchemaProps)
	walk = func(path string, s apiextensionsv1.JSONSchemaProps) {
		switch {
		case len(s.Properties) > 0:
			for name, property := range s.Properties {
				walk(path+"."+name, property)
			}
		case s.Items != nil && s.Items.Schema != nil && len(s.Items.Schema.Properties) > 0:
			walk(path+"[]", *s.Items.Schema)
		default:
			out = append(out, path)
		}
	}
	for name, property := range definition.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Properties {
		walk("spec."+name, property)
	}
	slices.Sort(out)
	require.NotEmpty(t, out)
	return out
}
