// SPDX-License-Identifier: Apache-2.0

package schemas

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/pergola-dev/pergola/schemas/resultcache"
	"github.com/pergola-dev/pergola/schemas/structure"
)

// toySources returns schemas of a small kind, from a definition and rules in testdata.
func toySources(t testing.TB) *sources {
	t.Helper()
	data, err := os.ReadFile("testdata/toy/crd.yaml")
	require.NoError(t, err)
	crd := &apiextensionsv1.CustomResourceDefinition{}
	require.NoError(t, yaml.UnmarshalStrict(data, crd))
	kinds, err := structure.KindsFromCRDs([]*apiextensionsv1.CustomResourceDefinition{crd}, nil)
	require.NoError(t, err)
	files := fstest.MapFS{}
	for gvk, kind := range kinds {
		source, err := kind.CUE()
		require.NoError(t, err)
		files["base/"+BaseFile(gvk)] = &fstest.MapFile{Data: source}
	}
	for _, name := range []string{"rules/lib/rule.cue", "rules/any/operations.cue", "testdata/toy/rules/toy/parts.cue"} {
		data, err := os.ReadFile(name)
		require.NoError(t, err)
		files[trimPrefix(name, "testdata/toy/")] = &fstest.MapFile{Data: data}
	}
	s, err := newSources(newKindSet(slices.Collect(maps.Keys(kinds)), func(schema.GroupVersionKind) (structure.Kinds, error) { return kinds, nil }), files)
	require.NoError(t, err)
	return s
}

func trimPrefix(text, prefix string) string {
	if len(text) > len(prefix) && text[:len(prefix)] == prefix {
		return text[len(prefix):]
	}
	return text
}

func parseObject(t testing.TB, text string) *unstructured.Unstructured {
	t.Helper()
	result := &unstructured.Unstructured{}
	require.NoError(t, yaml.Unmarshal([]byte(text), &result.Object))
	return result
}

func parseToyObject(t testing.TB, spec string) *unstructured.Unstructured {
	return parseObject(t, "apiVersion: core.example.org/v1\nkind: Toy\nmetadata: {name: bear, namespace: shelf}\nspec: "+spec)
}

const validToySpec = `{size: 3, frame: {kind: a, material: wood}, parts: [{name: ear}]`

func TestObjectFindings(t *testing.T) {
	s := toySources(t)
	tests := map[string]struct {
		spec string
		want []string
	}{
		"valid":                {validToySpec + `}`, nil},
		"all fields":           {validToySpec + `, colour: red, labels: {a.b/c: x}, config: {any: [1, {}]}, bought: "2020-01-31T08:00:00Z", useful: true, string: null}`, nil},
		"quantity as number":   {`{size: 3, frame: {kind: a, material: wood}, parts: [{name: ear, memory: 5000000}, {name: eye, memory: 5Gi, weight: 1}]}`, nil},
		"whole number as 3.0":  {`{size: 3.0, frame: {kind: a, material: wood}, parts: [{name: ear}]}`, nil},
		"unknown field":        {validToySpec + `, color: red}`, []string{`spec.color Forbidden the field "color" does not exist; did you mean "colour"? [structure]`}},
		"unknown nested field": {`{size: 3, frame: {kind: a, material: wood}, parts: [{name: ear, nmae: x}]}`, []string{`spec.parts[0].nmae Forbidden the field "nmae" does not exist; did you mean "name"? [structure]`}},
		"wrong types": {`{size: "3", frame: [], parts: {}, useful: "true"}`, []string{
			`spec.frame TypeInvalid must be an object, but is a list [structure]`,
			`spec.parts TypeInvalid must be a list, but is an object [structure]`,
			`spec.size TypeInvalid must be a whole number, but is the text "3" (leave out the quotes) [structure]`,
			`spec.useful TypeInvalid must be true or false, but is the text "true" (leave out the quotes) [structure]`,
		}},
		"missing object, by its fields": {`{}`, []string{
			`spec.frame.kind Required must be set [structure]`,
			`spec.frame.material Required must be set [structure]`,
			`spec.parts Required must be set [structure]`,
			`spec.size Required must be set [structure]`,
		}},
		"enum":           {validToySpec + `, colour: rde}`, []string{`spec.colour NotSupported "rde" is not supported; use "red", "green" or "blue"; did you mean "red"? [structure]`}},
		"number too big": {`{size: 12, frame: {kind: a, material: wood}, parts: [{name: ear}]}`, []string{`spec.size Invalid 12 is too large: must be at least 1 and at most 9 [structure]`}},
		"fraction":       {`{size: 1.5, frame: {kind: a, material: wood}, parts: [{name: ear}]}`, []string{`spec.size TypeInvalid must be a whole number, but is the number 1.5 [structure]`}},
		"lengths and patterns": {`{size: 3, frame: {kind: a, material: velvet}, parts: [{name: EAR}, {name: "", memory: much}]}`, []string{
			`spec.frame.material TooLong has 6 characters, but may have at most 5 [structure]`,
			`spec.parts[0].name Invalid "EAR" does not have the form ^[a-z]+$ [structure]`,
			`spec.parts[1].memory Invalid "much" does not have the form ^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$ [structure]`,
			`spec.parts[1].name Required must not be empty [structure]`,
		}},
		"wrong type of a parent": {`5`, []string{`spec TypeInvalid must be an object, but is the number 5 [structure]`}},
		"wrong type of a parent, with rules": {`{size: 3, frame: {kind: a, material: wood}, parts: [5, 5]}`, []string{
			`spec.parts[0] TypeInvalid must be an object, but is the number 5 [structure]`, `spec.parts[1] TypeInvalid must be an object, but is the number 5 [structure]`}},
		"more than 64 bit": {`{size: 99999999999999999999999, frame: {kind: a, material: 99999999999999999999999}, parts: [{name: ear}]}`, []string{
			`spec.frame.material TypeInvalid must be text, but is a whole number of more than 64 bit; put it in quotes [structure]`,
			`spec.size Invalid is a whole number of more than 64 bit, which the API cannot hold [structure]`}},
		"counts": {`{size: 3, frame: {kind: a, material: wood}, parts: []}`, []string{`spec.parts Invalid must not be empty: at least 1 item [structure]`}},
		"many":   {`{size: 3, frame: {kind: a, material: wood}, parts: [{name: a}, {name: b}, {name: c}, {name: d}]}`, []string{`spec.parts TooMany has 4 items, but may have at most 3 [structure]`}},
		"time":   {validToySpec + `, bought: yesterday}`, []string{`spec.bought Invalid "yesterday" is not a time such as 2025-01-31T08:00:00Z [structure]`}},
		"rule":   {`{size: 3, frame: {kind: a, material: wood}, parts: [{name: ear}, {name: ear}]}`, []string{`spec.parts[1].name Duplicate the name "ear" is taken by spec.parts[0] [toy/part-names-unique]`}},
		"structure and rule at once": {`{size: 3, colour: pink, frame: {kind: a, material: wood}, parts: [{name: ear}, {name: ear}]}`, []string{
			`spec.colour NotSupported "pink" is not supported; use "red", "green" or "blue" [structure]`,
			`spec.parts[1].name Duplicate the name "ear" is taken by spec.parts[0] [toy/part-names-unique]`,
		}},
		"null is absent, with a warning": {validToySpec + `, colour: null}`, []string{
			`spec.colour Invalid has no value, which is the same as leaving it out; write {} for an object without fields, or remove the line [structure/empty-value]`,
		}},
		"landscape rules need a landscape": {validToySpec + `, labels: {profile: nowhere}}`, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			violations, err := s.validate(t.Context(), []Input{{Object: parseToyObject(t, test.spec)}}, Options{})
			require.NoError(t, err)
			assert.Equal(t, test.want, formatViolations(violations))
		})
	}
}

func formatViolations(violations []Violation) []string {
	var result []string
	for _, v := range violations {
		result = append(result, fmt.Sprintf("%s %s %s [%s]", v.Field, v.Type, v.Message, v.Rule))
	}
	return result
}

func TestMetadataFindings(t *testing.T) {
	s := toySources(t)
	violations, err := s.validate(t.Context(), []Input{{Object: parseObject(t, `
apiVersion: core.example.org/v1
kind: Toy
metadata: {name: "", label: {}, annotations: {confirmation.gardener.cloud/deletion: "yes", num: 5}}
spec: `+validToySpec+`}`)}}, Options{})
	require.NoError(t, err)
	assert.Equal(t, []string{
		`metadata.annotations[confirmation.gardener.cloud/deletion] Invalid "yes" does not confirm the deletion; the value must be "true" [any/deletion-confirmation]`,
		`metadata.annotations[num] TypeInvalid must be text, but is the number 5; put it in quotes [structure]`,
		`metadata.label Forbidden the field "label" does not exist; did you mean "labels"? [structure]`,
		`metadata.name Required must not be empty [structure]`,
		`metadata.namespace Required must be set [structure]`,
	}, formatViolations(violations))
}

func TestUpdateAndLandscapeRules(t *testing.T) {
	s := toySources(t)
	in := Input{Object: parseToyObject(t, validToySpec+`, colour: red, labels: {profile: nowhere}}`), Old: parseToyObject(t, validToySpec+`, colour: blue}`)}
	profile := parseObject(t, "apiVersion: core.gardener.cloud/v1beta1\nkind: CloudProfile\nmetadata: {name: local}")
	around := &LandscapeObjects{Objects: []*unstructured.Unstructured{profile}}
	violations, err := s.validate(t.Context(), []Input{in}, Options{Landscape: around})
	require.NoError(t, err)
	assert.Equal(t, []string{
		`spec.colour Invalid was "blue" [toy/colour-stays]`,
		`spec.labels[profile] Invalid names the cloud profile "nowhere", which is not in the landscape [toy/known-profile]`,
	}, formatViolations(violations))
	assert.True(t, HasErrors(violations))

	profile.SetName("nowhere")
	violations, err = s.validate(t.Context(), []Input{in}, Options{Landscape: around})
	require.NoError(t, err)
	assert.Equal(t, []string{`spec.colour Invalid was "blue" [toy/colour-stays]`}, formatViolations(violations))
	assert.False(t, HasErrors(violations), "a warning is no error")
}

func TestParallelValidationWithCache(t *testing.T) {
	s := toySources(t)
	var inputs []Input
	for i := range 60 {
		o := parseToyObject(t, validToySpec+`}`)
		o.SetName(fmt.Sprintf("toy-%02d", i))
		if i%7 == 3 {
			require.NoError(t, unstructured.SetNestedField(o.Object, int64(99), "spec", "size"))
		}
		inputs = append(inputs, Input{Object: o})
	}
	cache := NewCache(100)
	opts := Options{Workers: 4, MaxEvaluationsPerContext: 5, Cache: cache}
	first, err := s.validate(t.Context(), inputs, opts)
	require.NoError(t, err)
	require.Len(t, first, 9)
	for i, v := range first {
		assert.Equal(t, fmt.Sprintf("toy-%02d", 7*i+3), v.Name)
	}
	// the second run must not evaluate anything
	broken := &sources{kinds: s.kinds, digest: s.digest}
	second, err := broken.validate(t.Context(), inputs, opts)
	require.NoError(t, err)
	assert.Equal(t, first, second)
	// Unchanged objects need no evaluation either.
	good := slices.DeleteFunc(inputs, func(in Input) bool {
		size, _, _ := unstructured.NestedInt64(in.Object.Object, "spec", "size")
		return size == 99
	})
	for i := range good {
		good[i].Old = good[i].Object.DeepCopy()
	}
	require.Len(t, good, 51)
	none, err := broken.validate(t.Context(), good, opts)
	require.NoError(t, err)
	assert.Empty(t, none)
}

func TestMemoryCacheDropsOldest(t *testing.T) {
	cache := newMemoryCache[[]finding](2)
	keys := []resultcache.Key{{1}, {2}, {3}, {4}, {5}}
	for _, key := range keys {
		cache.put(key, []finding{{path: "x"}})
	}
	_, ok := cache.get(keys[0])
	assert.False(t, ok)
	_, ok = cache.get(keys[4])
	assert.True(t, ok)
}

func TestValidateCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := toySources(t).validate(ctx, []Input{{Object: parseToyObject(t, validToySpec+`}`)}}, Options{})
	require.ErrorIs(t, err, context.Canceled)
}

func TestDeletionNeedsConfirmation(t *testing.T) {
	s := toySources(t)
	shoot := parseObject(t, "apiVersion: core.gardener.cloud/v1beta1\nkind: Shoot\nmetadata: {name: a, namespace: garden-b}")
	violations, err := s.validate(t.Context(), []Input{{Old: shoot}}, Options{})
	require.NoError(t, err)
	require.Len(t, violations, 1)
	assert.Equal(t, TypeForbidden, violations[0].Type)
	assert.Equal(t, "metadata.annotations[confirmation.gardener.cloud/deletion]", violations[0].Field)

	shoot.SetAnnotations(map[string]string{"confirmation.gardener.cloud/deletion": "true"})
	violations, err = s.validate(t.Context(), []Input{{Old: shoot}}, Options{})
	require.NoError(t, err)
	assert.Empty(t, violations)
}

// TestDeletionConfirmationByKind checks that a deletion needs a confirmation for exactly the kinds
// that upstream protects.
func TestDeletionConfirmationByKind(t *testing.T) {
	garden := &LandscapeObjects{Objects: []*unstructured.Unstructured{validObject(t, "Garden")}}
	for name, test := range map[string]struct {
		text  string
		opts  Options
		field string
	}{
		"state":                         {"apiVersion: core.gardener.cloud/v1beta1\nkind: ShootState\nmetadata: {name: a, namespace: b}", Options{}, "metadata.annotations[confirmation.gardener.cloud/deletion]"},
		"confirmed":                     {"apiVersion: core.gardener.cloud/v1beta1\nkind: ShootState\nmetadata: {name: a, namespace: b, annotations: {confirmation.gardener.cloud/deletion: \"1\"}}", Options{}, ""},
		"extension object":              {"apiVersion: extensions.gardener.cloud/v1alpha1\nkind: DNSRecord\nmetadata: {name: a, namespace: b}", Options{}, "metadata.annotations[confirmation.gardener.cloud/deletion]"},
		"bastion":                       {"apiVersion: extensions.gardener.cloud/v1alpha1\nkind: Bastion\nmetadata: {name: a, namespace: b}", Options{}, ""},
		"core bucket":                   {"apiVersion: core.gardener.cloud/v1beta1\nkind: BackupBucket\nmetadata: {name: a}", Options{}, ""},
		"garden namespace":              {"apiVersion: v1\nkind: Namespace\nmetadata: {name: garden}", Options{Landscape: garden}, "metadata.name"},
		"garden namespace, no Garden":   {"apiVersion: v1\nkind: Namespace\nmetadata: {name: garden}", Options{Landscape: &LandscapeObjects{}}, ""},
		"another namespace, and Garden": {"apiVersion: v1\nkind: Namespace\nmetadata: {name: other}", Options{Landscape: garden}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			violations, err := Validate(t.Context(), []Input{{Old: parseObject(t, test.text)}}, test.opts)
			require.NoError(t, err)
			if test.field == "" {
				assert.Empty(t, violations)
				return
			}
			require.Len(t, violations, 1)
			assert.Equal(t, test.field, violations[0].Field)
			assert.Equal(t, TypeForbidden, violations[0].Type)
		})
	}
}

func TestRuleList(t *testing.T) {
	rules, err := toySources(t).listRules()
	require.NoError(t, err)
	byID := map[string]Rule{}
	for _, rule := range rules {
		byID[rule.ID] = rule
	}
	assert.Equal(t, Rule{ID: "toy/part-names-unique", Kind: "Toy", Title: "Names of parts are unique", Doc: "Parts are found by name.", Source: "test", Fields: []string{"spec.parts.name"}, Language: "cue", File: "schemas/rules/toy/parts.cue", Severity: SeverityError, Scope: "object", Class: ClassStatic}, byID["toy/part-names-unique"])
	assert.Equal(t, "*", byID["any/one-shot-operation"].Kind)
	assert.Equal(t, "go", byID["garden/networks-disjoint"].Language)
}

// TestCrashingCheck checks that a crash is a finding of the object, and that the process
// survives.
func TestCrashingCheck(t *testing.T) {
	s := toySources(t)
	for _, kind := range allKinds(t, s) {
		kind.Root = nil // makes the check crash
	}
	found, err := s.validate(t.Context(), []Input{{Object: parseToyObject(t, validToySpec+`}`)}}, Options{Workers: 1})
	require.NoError(t, err)
	require.Len(t, found, 1)
	assert.Equal(t, panicFinding.message, found[0].Message)
	assert.Equal(t, "bear", found[0].Name)
	assert.Equal(t, SeverityError, found[0].Severity)
}

// TestKindsReadingTheLandscape checks that cached results depend on other objects only for the
// listed kinds.
func TestKindsReadingTheLandscape(t *testing.T) {
	inGo := map[string]bool{ // through isGardenerGateOn and templates
		"CloudProfile": true, "NamespacedCloudProfile": true, "Gardenlet": true, "ManagedSeed": true, "ManagedSeedSet": true,
	}
	s, err := embeddedSources()
	require.NoError(t, err)
	for _, gvk := range s.kinds.gvks {
		units, err := s.unitsOf(gvk)
		require.NoError(t, err)
		reads := slices.ContainsFunc(units.units, func(u *ruleUnit) bool { return !u.dependencies.landscape.isEmpty() })
		name := structure.RulesName(gvk)
		assert.Equal(t, reads || inGo[name], kindsReadingTheLandscape[name], name)
	}
}
