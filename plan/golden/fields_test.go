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
	"github.com/pergola-dev/pergola/hack/speeds"
)

// fieldCase says which objects another value of a field changes: these, and no others.
type fieldCase struct {
	// Field of the declaration; elements of lists are written [].
	Field string `yaml:"field"`
	// Value is the other one. Where the field is in a list, Set has the fields to lay over the
	// declaration, with the whole list.
	Value any            `yaml:"value"`
	Set   map[string]any `yaml:"set"`
	// With are fields laid over the declaration before and after: what has to be there for the
	// field to count.
	With map[string]any `yaml:"with"`
	// GardenAPI is the mode of the landscape; crd if it is not said.
	GardenAPI string `yaml:"gardenAPI"`
	// Changes are the objects, as "<cluster> <Kind> <namespace>/<name>", and requests to the
	// secrets manager, as "secret <name>".
	Changes []string `yaml:"changes"`
	// Refused is the rule that forbids the other value.
	Refused string `yaml:"refused"`
	// Unread says why the field changes nothing of what is rendered.
	Unread string `yaml:"unread"`
}

// TestFieldsOfTheGarden proves for each field of a Garden that another value of it changes what it
// has to, and nothing else. testdata/garden-fields.yaml has them; a field of the API that is not
// there fails. PERGOLA_FIELDS_ALONE=1 renders each by itself.
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
	for n := range speeds.Points(t) {
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

// What is not read is looked at together; who changes something all the same is found, and the
// others are not blamed for it.
func TestFieldsThatAreReadAllTheSame(t *testing.T) {
	cases := []fieldCase{
		{Field: "spec.runtimeCluster.networking.blockCIDRs", Value: []any{"169.254.169.254/32"}, Unread: "x"},
		{Field: "spec.virtualCluster.kubernetes.kubeAPIServer.eventTTL", Value: "7h", Unread: "x"},
		{Field: "spec.runtimeCluster.networking.nodes", Value: []any{"172.19.0.0/24"}, Unread: "x"},
		{Field: "spec.runtimeCluster.networking.nodes", Value: []any{"172.20.0.0/24"}, Unread: "x"},
	}
	assert.True(t, cases[0].goesWith(cases[1]))
	assert.False(t, cases[2].goesWith(cases[3]), "the same field")
	got, problems := changesOf(t.Context(), cases)
	assert.Equal(t, [][]string{{}, {"runtime Deployment garden/virtual-garden-kube-apiserver"}, {}, {}}, got)
	assert.Equal(t, make([]error, 4), problems)
}

// externals are what the other values refer to, offered is an extension of their type.
var (
	externals = []any{
		map[string]any{"kind": "Secret", "namespace": "garden", "name": "*"}, map[string]any{"kind": "ConfigMap", "namespace": "garden", "name": "*"},
	}
	offered = map[string]any{
		"apiVersion": "operator.gardener.cloud/v1alpha1", "kind": "Extension", "metadata": map[string]any{"name": "foobar"},
		"spec": map[string]any{"deployment": map[string]any{"extension": map[string]any{"helm": map[string]any{"ociRepository": map[string]any{"ref": "registry.example.org/foobar:v1"}}}}, "resources": []any{map[string]any{"kind": "Extension", "type": "foobar", "clusterCompatibility": []any{"garden"}}}},
	}
)

// merged lays one map over another; lists are replaced.
func merged(under, over map[string]any) map[string]any {
	out := maps.Clone(under)
	for key, value := range over {
		inner, isMap := value.(map[string]any)
		below, wasMap := out[key].(map[string]any)
		if isMap && wasMap {
			value = merged(below, inner)
		}
		out[key] = value
	}
	return out
}

// leavesOf lists the fields below spec of a definition that have no fields themselves.
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
