// SPDX-License-Identifier: Apache-2.0

package schemas

import (
	"cmp"
	"testing"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/cuecontext"
	"cuelang.org/go/cue/parser"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pergola-dev/pergola/schemas/structure"
)

func TestInputDependencies(t *testing.T) {
	for _, c := range []struct{ name, rule, object, old, landscape string }{
		{name: "a field", rule: `object.spec.name`, object: `{"spec":{"name":*}}`},
		{name: "a field and what is in it", rule: `[object.spec.name.first, object.spec.name]`, object: `{"spec":{"name":*}}`},
		{name: "two", rule: `object.spec.b + object.spec.a`, object: `{"spec":{"a":* "b":*}}`},
		{name: "with a default", rule: `[*object.spec.name | ""]`, object: `{"spec":{"name":*}}`},
		{name: "whether it is there", rule: `[if object.spec.a == _|_ {1}]`, object: `{"spec":{"a":?}}`},
		{name: "whether it is there, and what", rule: `[if object.spec.a != _|_ {object.spec.a.b}]`, object: `{"spec":{"a":{"b":*}}}`},
		{name: "in a text", rule: `"\(object.metadata.name)"`, object: `{"metadata":{"name":*}}`},
		{name: "a fixed index", rule: `object.metadata.labels["a.b/c"].d`, object: `{"metadata":{"labels":{"a.b/c":{"d":*}}}}`},
		{name: "a computed index", rule: `object.spec[object.kind].x`, object: `{"kind":* "spec":#{ []:{"x":*}}}`},
		{name: "an item", rule: `object.spec.list[0].x`, object: `{"spec":{"list":#{ []:{"x":*}}}}`},
		{name: "the whole", rule: `_f & {of: object}`, object: `*`},
		{name: "of items only what is asked for", rule: `[for i, w in object.spec.workers if w.name == "" {"\(i)"}]`, object: `{"spec":{"workers":#{ []:{"name":*}}}}`},
		{name: "items as a whole", rule: `[for w in object.spec.workers {w}]`, object: `{"spec":{"workers":#{ []:*}}}`},
		{name: "items of items", rule: `[for w in object.spec.workers for z in w.zones {z}]`, object: `{"spec":{"workers":#{ []:{"zones":#{ []:*}}}}}`},
		{name: "one field and all", rule: `[object.m.a.b, for v in object.m {v.c}]`, object: `{"m":#{"a":{"b":* "c":*} []:{"c":*}}}`},
		{name: "how many", rule: `[if len(object.spec.workers) > 0 {1}]`, object: `{"spec":{"workers":#{}}}`},
		{name: "how many with a default", rule: `[if len(*object.spec.workers | []) > 0 {1}]`, object: `{"spec":{"workers":#{}}}`},
		{name: "how many of a declaration", rule: `[if len(_workers) > 0 {1}]`, object: `{"spec":{"workers":#{}}}`},
		{name: "by another declaration", rule: `[for w in _workers {w.name}]`, object: `{"spec":{"workers":#{ []:{"name":*}}}}`},
		{name: "by a declaration of a declaration", rule: `[for n in _names {n}]`, object: `{"metadata":{"name":*} "spec":{"workers":#{ []:{"name":*}}}}`},
		{name: "a value with another name", rule: `[for w in object.list let x = w.y if x.z != _|_ {1}]`, object: `{"list":#{ []:{"y":{"z":?}}}}`},
		{name: "values that see each other", rule: `{let b = a.c, let a = object.x, d: b.e}`, object: `{"x":{"c":{"e":*}}}`},
		{name: "a value that nobody uses", rule: `{let a = object.x, d: 1}`, object: `{}`},
		{name: "a variable with the name of the input", rule: `[for object in [{a: 1}] {object.a}]`, object: `{}`},
		{name: "a struct of values", rule: `[for at, v in {"a": object.a, "b": *object.b | ""} if v == "" {at}]`, object: `{"a":* "b":*}`},
		{name: "compared as a whole", rule: `[for w in object.l if w == {a: 1} {1}]`, object: `{"l":#{ []:*}}`},
		{name: "a slice", rule: `object.l[1:]`, object: `{"l":*}`},
		{name: "a field of that name", rule: `{a: object: 1, x: y.z, y: {z: 2}}`, object: `{}`},
		{name: "before and after", rule: `old.spec.a != object.spec.a`, object: `{"spec":{"a":*}}`, old: `{"spec":{"a":*}}`},
		{name: "whether there is one before", rule: `[if old == null {1}, if null != old {2}]`, object: `{}`},
		{name: "around", rule: `landscape.CloudProfile[object.spec.name]`, object: `{"spec":{"name":*}}`, landscape: `{"CloudProfile":#{ []:*}}`},
		{name: "the call of a function", rule: `strings.HasPrefix(object.kind, "x")`, object: `{"kind":*}`},
		{name: "the result of a function", rule: `strings.Split(object.kind, "x")[0]`, object: `{"kind":*}`},
		{name: "a field that is computed", rule: `{"\(object.kind)": 1}`, object: `{"kind":*}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			file, err := parser.ParseFile("rule.cue", `package rules
rules: "toy/one": violations: `+c.rule+`
_workers: *object.spec.workers | []
_names: [for w in _workers {"\(w.name)-\(object.metadata.name)"}]
_f: {of: _}
`)
			require.NoError(t, err)
			d := newRuleDeclarations()
			require.NoError(t, d.read(file))
			found, _ := d.dependenciesOf("toy/one")
			assert.Equal(t, c.object, found.object.String())
			assert.Equal(t, cmp.Or(c.old, "{}"), found.old.String())
			assert.Equal(t, cmp.Or(c.landscape, "{}"), found.landscape.String())
		})
	}
}

func TestRuleFilesDeclareFields(t *testing.T) {
	for name, text := range map[string]string{
		"embedded": "{a: 1}", "computed": `"\(x)": 1`, "a loop": `for x in [1] {y: x}`, "rules that are none": "rules: 1", "a rule that is none": "rules: {{a: 1}}",
	} {
		t.Run(name, func(t *testing.T) {
			file, err := parser.ParseFile("rule.cue", "package rules\n"+text)
			require.NoError(t, err)
			err = (newRuleDeclarations()).read(file)
			require.Error(t, err)
			assert.Contains(t, err.Error(), "rule.cue:2:")
		})
	}
}

func TestFieldSelections(t *testing.T) {
	object := map[string]any{
		"a": map[string]any{"b": int64(1), "c": []any{"x"}, "d": map[string]any{"e": "f", "g": "h"}}, "n": nil, "t": "text",
		"l": []any{map[string]any{"x": "1", "y": "2"}, map[string]any{"y": "3"}, "no object", nil},
	}
	type paths [][]string
	for name, c := range map[string]struct {
		whole, shape paths
		want         map[string]any
	}{
		"none":              {nil, nil, map[string]any{}},
		"whole":             {paths{{}}, nil, object},
		"two of one":        {paths{{"a", "b"}, {"a", "d", "e"}}, nil, map[string]any{"a": map[string]any{"b": int64(1), "d": map[string]any{"e": "f"}}}},
		"missing":           {paths{{"x", "y"}, {"a", "x", "y"}}, nil, map[string]any{"a": map[string]any{}}},
		"through a text":    {paths{{"t", "x"}}, nil, map[string]any{"t": "text"}},
		"through a null":    {paths{{"n", "x"}}, nil, map[string]any{"n": nil}},
		"a list":            {paths{{"a", "c"}}, nil, map[string]any{"a": map[string]any{"c": []any{"x"}}}},
		"into a list":       {paths{{"a", "c", "0"}}, nil, map[string]any{"a": map[string]any{"c": []any{"x"}}}},
		"of items":          {paths{{"l", anyItem, "x"}}, nil, map[string]any{"l": []any{map[string]any{"x": "1"}, map[string]any{}, "no object", nil}}},
		"how many":          {nil, paths{{"l"}}, map[string]any{"l": []any{true, true, true, true}}},
		"which":             {nil, paths{{"a"}}, map[string]any{"a": map[string]any{"b": true, "c": true, "d": true}}},
		"how long":          {nil, paths{{"t"}}, map[string]any{"t": "text"}},
		"one and all":       {paths{{"a", "d"}, {"a", anyItem, "e"}}, nil, map[string]any{"a": map[string]any{"b": int64(1), "c": []any{"x"}, "d": object["a"].(map[string]any)["d"]}}},
		"all in one":        {paths{{"a", "d", "g"}, {"a", anyItem, "e"}}, nil, map[string]any{"a": map[string]any{"b": int64(1), "c": []any{"x"}, "d": map[string]any{"e": "f", "g": "h"}}}},
		"a part of a whole": {paths{{"a", "b"}, {"a"}}, nil, map[string]any{"a": object["a"]}},
	} {
		t.Run(name, func(t *testing.T) {
			p := &fieldSelection{}
			for _, path := range c.whole {
				p.selectionAt(path).isWhole = true
			}
			for _, path := range c.shape {
				p.selectionAt(path).shape = true
			}
			p.merge()
			assert.Equal(t, c.want, p.selectFrom(object))
		})
	}
}

// TestUnitsAgreeWithAllRules checks that rules compiled apart, which see only what they read,
// have the same findings as all rules together, which see the whole object.
func TestUnitsAgreeWithAllRules(t *testing.T) {
	s, err := embeddedSources()
	require.NoError(t, err)
	meta, err := s.ruleMeta()
	require.NoError(t, err)
	for _, kind := range allKinds(t, s) {
		name := structure.RulesName(kind.GVK)
		if name == "Namespace" || name == "extensions.Cluster" || name == "ControllerDeployment" && kind.GVK.Version == "v1beta1" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			whole := validObject(t, name).Object
			ctx := cuecontext.New()
			rules, err := s.compileRules(ctx, kind.GVK)
			require.NoError(t, err)
			w := newWorker(s, nil, nil)
			units, err := s.unitsOf(kind.GVK)
			require.NoError(t, err)
			violations := 0
			for i, variant := range incompleteVariants(whole) {
				if i%23 != 0 { // all rules together take a second for a hundred of them
					continue
				}
				object, _ := kind.Normalise(variant.(map[string]any))
				for _, old := range []map[string]any{nil, whole} {
					filled := rules.FillPath(objectPath, ctx.Encode(object, cue.NilIsAny(false))).FillPath(landscapePath, ast.NewNull())
					if old == nil {
						filled = filled.FillPath(oldPath, ast.NewNull())
					} else {
						filled = filled.FillPath(oldPath, ctx.Encode(old, cue.NilIsAny(false)))
					}
					for _, u := range units.units {
						found, err := w.checkUnit(u, ruleInput{kind: kind, object: object, old: old})
						require.NoError(t, err)
						byID := map[string]ruleResult{}
						for _, r := range found {
							byID[r.id] = r
						}
						for _, rule := range u.rules {
							want, err := evaluateRule(meta[rule.ID], filled.LookupPath(rulesPath).LookupPath(cue.MakePath(cue.Str(rule.ID))))
							got := byID[rule.ID]
							require.Equal(t, err != nil, got.fault != nil, "%s: %v", rule.ID, err)
							require.Equal(t, want, got.findings, rule.ID)
							violations += len(want)
						}
					}
				}
			}
			t.Logf("%d violations", violations)
		})
	}
}

// TestRuleHeadsAgreeWithRules checks that rules read without compiling equal those that CUE
// compiles.
func TestRuleHeadsAgreeWithRules(t *testing.T) {
	s, err := embeddedSources()
	require.NoError(t, err)
	meta, err := s.ruleMeta()
	require.NoError(t, err)
	seen := map[string]bool{}
	for _, gvk := range s.kinds.gvks {
		units, err := s.unitsOf(gvk)
		require.NoError(t, err)
		for _, u := range units.units {
			for _, head := range u.rules {
				seen[head.ID] = true
				assert.Equal(t, meta[head.ID].Severity, head.Severity, head.ID)
				assert.Equal(t, meta[head.ID].Scope, head.Scope, head.ID)
			}
		}
	}
	assert.Len(t, seen, len(meta))
}
