// SPDX-License-Identifier: Apache-2.0

package schemas

import (
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pergola-dev/pergola/schemas/structure"
)

// oddValues are values of unexpected types or just at a limit.
var oddValues = []any{
	nil, "", " ", "a", "A", "-", ".", "a.b", "a/b", "*", "1.2.3.4", "10.0.0.0/8", "10.0.0.1/8", "::/0", "fd00::/129", "1.34", "v1.34.1", "1.34.1-x+y", "0", "-1", "1e9", "100%", "101%",
	"0 0 * * *", "* * * * * *", "@daily", "220000+0100", "250000+0100", "1h", "-1h", "1h1", "2026-01-01T00:00:00Z", "2026-13-01", "http://x", "https://x.example.org/#a", "\x00", "ä", "${x}", "\\(x)",
	int64(0), int64(1), int64(-1), int64(1 << 31), int64(1<<63 - 1), 0.5, true, false,
	[]any{}, []any{nil}, []any{"a", "a"}, []any{map[string]any{}}, []any{map[string]any{"name": "a"}, map[string]any{"name": "a"}}, map[string]any{}, map[string]any{"a": nil}, map[string]any{"name": int64(7)},
}

// valuePaths returns the paths of all values inside a value, in a stable order.
func valuePaths(value any, at []any) [][]any {
	all := [][]any{at}
	switch v := value.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			all = append(all, valuePaths(v[name], append(slices.Clone(at), name))...)
		}
	case []any:
		for i, item := range v {
			all = append(all, valuePaths(item, append(slices.Clone(at), i))...)
		}
	}
	return all
}

// replaceValue returns a copy of a value with another value at a path.
func replaceValue(value any, at []any, by any) any {
	if len(at) == 0 {
		return by
	}
	switch v := value.(type) {
	case map[string]any:
		out := maps.Clone(v)
		out[at[0].(string)] = replaceValue(v[at[0].(string)], at[1:], by)
		return out
	case []any:
		out := slices.Clone(v)
		out[at[0].(int)] = replaceValue(v[at[0].(int)], at[1:], by)
		return out
	}
	return value
}

// FuzzRules checks that every rule evaluates, and nothing crashes, for any value in an object,
// before or after a change. The corpus starts with every kind.
func FuzzRules(f *testing.F) {
	s, err := embeddedSources()
	require.NoError(f, err)
	var kinds []*unstructured.Unstructured
	for _, kind := range allKinds(f, s) {
		name := structure.RulesName(kind.GVK)
		if name == "Namespace" || name == "extensions.Cluster" || name == "ControllerDeployment" && kind.GVK.Version == "v1beta1" {
			continue
		}
		o := validObject(f, name)
		o.SetGroupVersionKind(kind.GVK)
		kinds = append(kinds, o)
	}
	for i := range kinds {
		f.Add(uint8(i), uint16(7*i), uint8(i), uint16(11*i), uint8(3*i), i%2 == 0)
	}
	around := &LandscapeObjects{Objects: []*unstructured.Unstructured{validObject(f, "CloudProfile"), validObject(f, "Garden"), validObject(f, "Project"), validObject(f, "Seed")}}
	f.Fuzz(func(t *testing.T, kind uint8, first uint16, value uint8, second uint16, other uint8, before bool) {
		whole := kinds[int(kind)%len(kinds)]
		changed := any(whole.Object)
		for _, c := range []struct {
			at    uint16
			value uint8
		}{{first, value}, {second, other}} {
			all := valuePaths(changed, nil)[1:] // not the object itself
			all = slices.DeleteFunc(all, func(at []any) bool { return at[0] == "apiVersion" || at[0] == "kind" })
			changed = replaceValue(changed, all[int(c.at)%len(all)], oddValues[int(c.value)%len(oddValues)])
		}
		in := Input{Object: &unstructured.Unstructured{Object: changed.(map[string]any)}, Old: whole}
		if before {
			in.Object, in.Old = in.Old, in.Object
		}
		for _, opts := range []Options{{}, {Landscape: around}} {
			for _, input := range []Input{in, {Object: in.Object}} {
				found, err := Validate(t.Context(), []Input{input}, opts)
				require.NoError(t, err)
				for _, v := range found {
					require.NotContains(t, v.Message, ruleFailureMessage, "%s", v)
					require.NotEqual(t, panicFinding.message, v.Message, "%s", v)
				}
			}
		}
	})
}

// FuzzStructure checks that Go and CUE give the same verdict on every object. Therefore only
// objects that Go rejects are evaluated in CUE.
func FuzzStructure(f *testing.F) {
	s, err := embeddedSources()
	require.NoError(f, err)
	kinds := allKinds(f, s)
	for i := range kinds {
		f.Add(uint8(i), uint16(5*i), uint8(i), uint16(3*i), uint8(7*i))
	}
	w, used := newWorker(s, nil, nil), 0
	f.Fuzz(func(t *testing.T, number uint8, first uint16, value uint8, second uint16, other uint8) {
		kind := kinds[int(number)%len(kinds)]
		name := structure.RulesName(kind.GVK)
		changed := any(map[string]any{"apiVersion": kind.GVK.GroupVersion().String(), "kind": kind.GVK.Kind, "metadata": map[string]any{"name": "x"}})
		if name != "Namespace" && name != "extensions.Cluster" {
			changed = validObject(t, name).Object
		}
		changed.(map[string]any)["apiVersion"] = kind.GVK.GroupVersion().String()
		for _, c := range []struct {
			at    uint16
			value uint8
		}{{first, value}, {second, other}} {
			all := valuePaths(changed, nil)[1:]
			changed = replaceValue(changed, all[int(c.at)%len(all)], oddValues[int(c.value)%len(oddValues)])
		}
		object, _ := kind.Normalise(changed.(map[string]any))
		if used++; used%200 == 0 {
			w.resetContext()
		}
		inCUE, err := w.rejectedFields(kind, object)
		require.NoError(t, err)
		require.Equal(t, len(inCUE) > 0, len(kind.Check(object)) > 0, "in CUE: %v, in Go: %v, of %v", inCUE, kind.Check(object), object)
	})
}

// TestNullsInConfigurations checks nulls, which the API preserves wherever it preserves
// unknown fields, before and after a change.
func TestNullsInConfigurations(t *testing.T) {
	whole := validObject(t, "ManagedSeed")
	at := []any{"spec", "gardenlet", "config", "seedConfig"}
	with := &unstructured.Unstructured{Object: replaceValue(whole.Object, at, nil).(map[string]any)}
	for _, in := range []Input{{Object: whole, Old: with}, {Object: with, Old: whole}} {
		found, err := Validate(t.Context(), []Input{in}, Options{})
		require.NoError(t, err)
		for _, v := range found {
			require.NotContains(t, v.Message, ruleFailureMessage, "%s", v)
		}
	}
}
