package across

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pergola-dev/pergola/schemas"
	"github.com/pergola-dev/pergola/schemas/structure"
)

// build makes an object that has one value at a path such as spec.dns.providers[].secretName.
func build(path []string, value any) map[string]any {
	name, isList := strings.CutSuffix(path[0], "[]")
	inner := value
	if len(path) > 1 {
		inner = build(path[1:], value)
	}
	if isList {
		inner = []any{inner}
	}
	return map[string]any{name: inner}
}

// TestReferences: each field of the table is one of the API, is found where it names nothing, and is fine where it names
// something, or what exists outside of the landscape.
func TestReferences(t *testing.T) {
	kinds, err := schemas.StructuralKinds()
	require.NoError(t, err)
	find := func(r reference) *structure.Kind {
		first, _, _ := strings.Cut(r.path, ".")
		for _, k := range kinds {
			if structure.RulesName(k.GVK) == r.of && k.Root.Properties[strings.TrimSuffix(first, "[]")] != nil {
				return k // one of its versions
			}
		}
		return nil
	}
	for _, r := range references() {
		t.Run(r.of+" "+r.path, func(t *testing.T) {
			kind := find(r)
			require.NotNil(t, kind)
			node := kind.Root
			for _, name := range strings.Split(r.path, ".") {
				name, isList := strings.CutSuffix(name, "[]")
				require.Contains(t, node.Properties, name, "the field of the API")
				node = node.Properties[name]
				if isList {
					node = node.Items
				}
			}
			var value any = "thing"
			field := strings.ReplaceAll(r.path, "[]", "[0]")
			if len(node.Properties) > 0 {
				value = map[string]any{"name": "thing"}
				field += ".name"
			}
			from := build(strings.Split(r.path, "."), value)
			from["apiVersion"], from["kind"] = kind.GVK.GroupVersion().String(), kind.GVK.Kind
			from["metadata"] = map[string]any{"name": "from", "namespace": "ns"}
			namespace := map[string]string{inGarden: "garden", inOwn: "ns", asWritten: "ns"}[r.namespace]
			to := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "thing"}}}
			to.SetGroupVersionKind(schema.GroupVersionKind{Group: r.to.Group, Version: "v1", Kind: r.to.Kind})
			to.SetNamespace(namespace)

			rule := strings.ToLower(r.of) + "/references"
			found := func(opts Options, objects ...*unstructured.Unstructured) []string {
				inputs := []schemas.Input{{Object: &unstructured.Unstructured{Object: from}}}
				for _, o := range objects {
					inputs = append(inputs, schemas.Input{Object: o})
				}
				var out []string
				for _, v := range Check(inputs, opts) {
					if v.Rule == rule {
						out = append(out, v.Field+" "+string(v.Type))
					}
				}
				return out
			}
			assert.Equal(t, []string{field + " Invalid"}, found(Options{}))
			assert.Empty(t, found(Options{}, to))
			assert.Empty(t, found(Options{External: []External{{Kind: r.to.Kind, Namespace: namespace, Name: "th*"}}}))
		})
	}
}
