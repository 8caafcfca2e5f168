// SPDX-License-Identifier: Apache-2.0

package schemas

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pergola-dev/pergola/api/crds"
	"github.com/pergola-dev/pergola/schemas/fieldpath"
	"github.com/pergola-dev/pergola/schemas/structure"
)

// constraintViolation is a value that violates one constraint of a definition.
type constraintViolation struct {
	constraint string
	parent     fieldpath.Path // path of the value
	value      any
	field      fieldpath.Path // path of the expected finding
}

// invalidFormatValues maps every format that occurs to a wrong value.
var invalidFormatValues = map[string]any{
	"date-time": "2020-01-31", "duration": "soon", "cidr": "10.0.0.0/33", "byte": "%%", "ipv4": "::1", "ipv6": "10.0.0.1",
	"int32": int64(math.MaxInt32) + 1, "int64": 1e19,
}

// invalidTypeValues maps every type to a value of another type.
var invalidTypeValues = map[string]any{"object": "x", "array": "x", "string": int64(5), "integer": "x", "number": "x", "boolean": "x"}

// violateConstraints returns a wrong value for every constraint below a definition. It reads the
// definition, not the nodes that this package makes of it, so that a dropped constraint is found.
func violateConstraints(t *testing.T, props *apiextensionsv1.JSONSchemaProps, path fieldpath.Path) []constraintViolation {
	var all []constraintViolation
	put := func(constraint string, value any) {
		all = append(all, constraintViolation{constraint, path, value, path})
	}
	items := func(count int64) []any {
		list := make([]any, count)
		for i := range list {
			list[i] = map[string]any{}
		}
		return list
	}
	entries := func(count int64) map[string]any {
		object := map[string]any{}
		for i := range count {
			object[fmt.Sprintf("k%d", i)] = "x"
		}
		return object
	}
	switch {
	case props.XIntOrString:
		put("int-or-string", true)
	case props.Type != "":
		put("type "+props.Type, invalidTypeValues[props.Type])
	}
	if props.Format != "" {
		value, known := invalidFormatValues[props.Format]
		assert.True(t, known, "%s: no wrong value is known for the format %s", path, props.Format)
		put("format "+props.Format, value)
	}
	if len(props.Enum) > 0 {
		put("enum", "no-such-value")
	}
	if props.Pattern != "" {
		pattern := regexp.MustCompile(props.Pattern)
		wrong := slices.IndexFunc([]string{"!", "\n", ""}, func(text string) bool { return !pattern.MatchString(text) })
		put("pattern", []string{"!", "\n", ""}[wrong])
	}
	if props.Minimum != nil {
		put("minimum", int64(*props.Minimum)-1)
	}
	if props.Maximum != nil {
		put("maximum", int64(*props.Maximum)+1)
	}
	if props.MinLength != nil {
		put("minLength", strings.Repeat("a", int(*props.MinLength)-1))
	}
	if props.MaxLength != nil {
		put("maxLength", strings.Repeat("a", int(*props.MaxLength)+1))
	}
	if props.MinItems != nil {
		put("minItems", items(*props.MinItems-1))
	}
	if props.MaxItems != nil {
		put("maxItems", items(*props.MaxItems+1))
	}
	if props.MinProperties != nil {
		put("minProperties", entries(*props.MinProperties-1))
	}
	if props.MaxProperties != nil {
		put("maxProperties", entries(*props.MaxProperties+1))
	}
	for _, name := range props.Required {
		all = append(all, constraintViolation{"required", path, map[string]any{}, path.Append(name)})
	}
	if len(props.Properties) > 0 && (props.XPreserveUnknownFields == nil || !*props.XPreserveUnknownFields) {
		all = append(all, constraintViolation{"unknown field", path, map[string]any{"no-such-field": "x"}, path.Append("no-such-field")})
	}
	for name, child := range props.Properties {
		all = append(all, violateConstraints(t, &child, path.Append(name))...)
	}
	if props.Items != nil {
		all = append(all, violateConstraints(t, props.Items.Schema, path.Append(0))...)
	}
	if extra := props.AdditionalProperties; extra != nil && extra.Schema != nil {
		all = append(all, violateConstraints(t, extra.Schema, path.Append(fieldpath.Key("a.b/c")))...)
	}
	return all
}

// TestEveryDefinitionConstraint checks that no type, format, enum, pattern, bound, length,
// count or required field is ignored: a violation is a finding at that field.
func TestEveryDefinitionConstraint(t *testing.T) {
	kinds := kindsWithSchema(t)
	for _, crd := range crds.All() {
		for _, version := range crd.Spec.Versions {
			gvk := schema.GroupVersionKind{Group: crd.Spec.Group, Version: version.Name, Kind: crd.Spec.Names.Kind}
			if kind, ok := kinds[gvk]; ok {
				t.Run(strings.ReplaceAll(gvk.GroupVersion().String(), "/", " ")+" "+gvk.Kind, func(t *testing.T) {
					t.Parallel()
					assertConstraints(t, kind, version.Schema.OpenAPIV3Schema)
				})
			}
		}
	}
}

func assertConstraints(t *testing.T, kind *structure.Kind, root *apiextensionsv1.JSONSchemaProps) {
	var all []constraintViolation
	for name, props := range root.Properties {
		switch {
		case slices.Contains([]string{"apiVersion", "kind", "metadata"}, name):
		case kind.Root.Properties[name] == nil:
			all = append(all, constraintViolation{"other version", nil, map[string]any{name: "x"}, fieldpath.Path{name}})
		default:
			all = append(all, violateConstraints(t, &props, fieldpath.Path{name})...)
		}
	}
	for _, name := range root.Required {
		if name != "spec" {
			all = append(all, constraintViolation{"required", nil, map[string]any{}, fieldpath.Path{name}})
		}
	}
	inputs := make([]Input, len(all))
	for i, b := range all {
		object := &unstructured.Unstructured{Object: objectWithValue(b.parent, b.value).(map[string]any)}
		object.SetGroupVersionKind(kind.GVK)
		object.SetName(fmt.Sprint(i))
		inputs[i] = Input{Object: object}
	}
	violations, err := Validate(t.Context(), inputs, Options{})
	require.NoError(t, err)
	fields := map[string][]string{}
	for _, v := range violations {
		if v.Severity == SeverityError {
			fields[v.Name] = append(fields[v.Name], v.Field)
		}
	}
	count := map[string]int{}
	for i, b := range all {
		count[strings.Fields(b.constraint)[0]]++
		found := slices.ContainsFunc(fields[fmt.Sprint(i)], func(field string) bool {
			// A missing object is reported at its required fields.
			return field == b.field.String() || b.constraint == "required" && isWithinPath(b.field.String(), field)
		}) || b.constraint == "required" && isOptionalField(kind, b.field.String())
		assert.True(t, found, "%s: %v breaks the constraint %q without a finding at this field, but at %v", b.field, b.value, b.constraint, fields[fmt.Sprint(i)])
	}
	t.Logf("%d wrong values: %v", len(all), count)
	assert.NotZero(t, count["type"])
}
