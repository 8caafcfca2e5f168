package golden

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	yamlv3 "go.yaml.in/yaml/v3"
	"golang.org/x/sync/errgroup"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/pergola-dev/pergola/api/crds"
	"github.com/pergola-dev/pergola/components"
	"github.com/pergola-dev/pergola/plan"
	"github.com/pergola-dev/pergola/render"
)

// fieldCase says which objects another value of a field changes: these, and no others.
type fieldCase struct {
	// Field of the declaration; elements of lists are written [].
	Field string `yaml:"field"`
	// Value is the other one. Where the field is in a list, Set has the fields to lay over the declaration, with the whole list.
	Value any            `yaml:"value"`
	Set   map[string]any `yaml:"set"`
	// With are fields laid over the declaration before and after: what has to be there for the field to count.
	With map[string]any `yaml:"with"`
	// GardenAPI is the mode of the landscape; crd if it is not said.
	GardenAPI string `yaml:"gardenAPI"`
	// Changes are the objects, as "<cluster> <Kind> <namespace>/<name>", and requests to the secrets manager, as "secret <name>".
	Changes []string `yaml:"changes"`
	// Refused is the rule that forbids the other value.
	Refused string `yaml:"refused"`
	// Unread says why the field changes nothing of what is rendered.
	Unread string `yaml:"unread"`
}

// TestFieldsOfTheGarden proves for each field of a Garden that another value of it changes what it has to, and nothing else.
// testdata/garden-fields.yaml has them; a field of the API that is not there fails.
func TestFieldsOfTheGarden(t *testing.T) {
	var cases []fieldCase
	data, err := os.ReadFile("testdata/garden-fields.yaml")
	require.NoError(t, err)
	decoder := yamlv3.NewDecoder(bytes.NewReader(data))
	decoder.KnownFields(true)
	require.NoError(t, decoder.Decode(&cases))

	f := fieldTest{rendered: map[string]*renderedOnce{}}
	var group errgroup.Group
	group.SetLimit(runtime.GOMAXPROCS(0))
	got, problems := make([][]string, len(cases)), make([]error, len(cases))
	for i, c := range cases {
		group.Go(func() error {
			got[i], problems[i] = f.changes(t.Context(), c)
			return nil
		})
	}
	_ = group.Wait()
	listed := map[string]bool{}
	for i, c := range cases {
		listed[c.Field] = true
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

// fieldTest renders each declaration once.
type fieldTest struct {
	mu       sync.Mutex
	rendered map[string]*renderedOnce
}

type renderedOnce struct {
	once    sync.Once
	objects map[string]string
	err     error
}

// changes gives the names of what differs with the other value.
func (f *fieldTest) changes(ctx context.Context, c fieldCase) ([]string, error) {
	set := c.Set
	if set == nil {
		set = map[string]any{c.Field: c.Value}
	}
	before, err := f.render(ctx, c.GardenAPI, c.With)
	if err != nil {
		return nil, fmt.Errorf("without: %w", err)
	}
	after, err := f.render(ctx, c.GardenAPI, c.With, set)
	if err != nil {
		return nil, fmt.Errorf("with: %w", err)
	}
	out := []string{}
	for _, name := range slices.Sorted(maps.Keys(before)) {
		if after[name] != before[name] {
			out = append(out, name)
		}
	}
	for name := range after {
		if _, has := before[name]; !has {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out, nil
}

func nested(path []string, value any) map[string]any {
	if len(path) == 1 {
		return map[string]any{path[0]: value}
	}
	return map[string]any{path[0]: nested(path[1:], value)}
}

// render gives the objects of the Garden with some fields laid over it, in the order they are given.
func (f *fieldTest) render(ctx context.Context, gardenAPI string, over ...map[string]any) (map[string]string, error) {
	c := Case{Base: "default", component: "garden/none", name: "field", Landscape: map[string]any{"external": externals}}
	if gardenAPI != "" {
		c.Landscape["gardenAPI"] = gardenAPI
	}
	declaration := map[string]any{"apiVersion": "operator.gardener.cloud/v1alpha1", "kind": "Garden", "metadata": map[string]any{"name": "local"}}
	for _, fields := range over {
		for _, path := range slices.Sorted(maps.Keys(fields)) {
			declaration = merged(declaration, nested(strings.Split(path, "."), fields[path]))
		}
	}
	c.Declarations = []map[string]any{declaration, offered}
	key, err := json.Marshal([]any{gardenAPI, declaration})
	if err != nil {
		return nil, err
	}
	f.mu.Lock()
	r := f.rendered[string(key)]
	if r == nil {
		r = &renderedOnce{}
		f.rendered[string(key)] = r
	}
	f.mu.Unlock()
	r.once.Do(func() { r.objects, r.err = objectsOf(ctx, c) })
	return r.objects, r.err
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

// A hash in a name follows from the content, which counts by itself.
var hashInName = regexp.MustCompile(`-[0-9a-f]{8}$`)

func objectsOf(ctx context.Context, c Case) (map[string]string, error) {
	in, options, err := c.input(ctx, components.FS)
	if err != nil {
		return nil, err
	}
	result, err := render.Render(in, options)
	if err != nil {
		return nil, err
	}
	requests, err := result.Secrets()
	if err != nil {
		return nil, err
	}
	out := map[string]string{}
	for name, request := range requests {
		out["secret "+name] = string(request)
	}
	for _, b := range result.Bundles {
		for _, o := range b.Objects {
			ref := plan.RefOf(o.Unstructured)
			name := hashInName.ReplaceAllString(ref.Name, "-HASH")
			if ref.Namespace != "" {
				name = ref.Namespace + "/" + name
			}
			text, err := json.Marshal(o.Object)
			if err != nil {
				return nil, err
			}
			out[b.Cluster+" "+ref.Kind+" "+name] += string(text) + "\n"
		}
	}
	return out, nil
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
