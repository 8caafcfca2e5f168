// SPDX-License-Identifier: Apache-2.0

package structure

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/pergola-dev/pergola/schemas/fieldpath"
)

type outerConfig struct {
	metav1.TypeMeta `json:",inline"`
	Deep            *innerConfig       `json:"deep,omitempty"`
	Many            []innerConfig      `json:"many"`
	Named           map[string]float64 `json:"named"`
	Raw             runtime.RawExtension
	Self            *outerConfig `json:"self"`
	Hidden          string       `json:"-"`
}

type innerConfig struct {
	For   metav1.Duration    `json:"for"`
	Size  *resource.Quantity `json:"size"`
	Port  intstr.IntOrString `json:"port"`
	Bytes []byte             `json:"bytes"`
	On    bool               `json:"on"`
	Any   any                `json:"any"`
	Only  int32              `json:"only"`
}

func TestKindFromGoType(t *testing.T) {
	kind, err := KindFromGoType(schema.GroupVersionKind{Kind: "Outer"}, reflect.TypeFor[outerConfig]())
	require.NoError(t, err)
	for name, c := range map[string]struct {
		object map[string]any
		want   string
	}{
		"all": {map[string]any{"apiVersion": "a", "kind": "b", "deep": map[string]any{"for": "1h", "size": 0.5, "port": "http", "bytes": "aGk=", "on": true, "any": map[string]any{"x": 1}, "only": int64(1)},
			"many": []any{}, "named": map[string]any{"x": 1.5}, "Raw": map[string]any{"any": "thing"}, "self": map[string]any{"more": "not looked at"}}, ""},
		"duration":       {map[string]any{"deep": map[string]any{"for": "long"}}, "deep.for Invalid"},
		"quantity":       {map[string]any{"deep": map[string]any{"size": []any{}}}, "deep.size TypeInvalid"},
		"switch":         {map[string]any{"many": []any{map[string]any{"on": "yes"}}}, "many[0].on TypeInvalid"},
		"list":           {map[string]any{"many": map[string]any{}}, "many TypeInvalid"},
		"number in map":  {map[string]any{"named": map[string]any{"x": "1"}}, "named[x] TypeInvalid"},
		"not in JSON":    {map[string]any{"Hidden": "a"}, "Hidden Forbidden"},
		"unknown":        {map[string]any{"deeep": map[string]any{}}, "deeep Forbidden"},
		"elsewhere":      {map[string]any{"only": int64(1)}, "only Forbidden"},
		"fraction":       {map[string]any{"deep": map[string]any{"only": 1.5}}, "deep.only TypeInvalid"},
		"number too big": {map[string]any{"deep": map[string]any{"bytes": "%"}}, "deep.bytes Invalid"},
	} {
		t.Run(name, func(t *testing.T) {
			found := kind.Check(c.object)
			if c.want == "" {
				require.Empty(t, found)
				return
			}
			require.Len(t, found, 1)
			assert.Equal(t, c.want, found[0].Path.String()+" "+found[0].Type)
			if name == "elsewhere" {
				assert.Contains(t, found[0].Message, "did you mean deep.only?")
			}
		})
	}
	_, err = KindFromGoType(schema.GroupVersionKind{Kind: "Bad"}, reflect.TypeFor[struct{ C chan int }]())
	require.EqualError(t, err, "reading the schema of /, Kind=Bad: C: chan int has no form in JSON")
}

// TestMisplacedFieldHint checks that a path is suggested only if it is the only nearest one.
func TestMisplacedFieldHint(t *testing.T) {
	leaf := func() *Node { return &Node{Type: "string"} }
	object := func(fields map[string]*Node) *Node { return &Node{Type: "object", Properties: fields} }
	root := object(map[string]*Node{
		"spec": object(map[string]*Node{
			"a":      object(map[string]*Node{"both": leaf(), "deep": object(map[string]*Node{"far": object(map[string]*Node{"tooFar": leaf()})})}),
			"b":      object(map[string]*Node{"both": leaf(), "single": leaf()}),
			"inList": {Type: "array", Items: object(map[string]*Node{"item": leaf()})},
		}),
		"top": leaf(),
	})
	for path, want := range map[string]string{
		"spec.single": "spec.b.single", "single": "spec.b.single", "spec.a.single": "spec.b.single", "spec.both": "", "spec.a.top": "top", "spec.far": "spec.a.deep.far",
		"tooFar": "", "spec.item": "", "nowhere": "",
	} {
		assert.Equal(t, want, root.findMisplaced(fieldpath.Parse(path)).String(), path)
	}
}
