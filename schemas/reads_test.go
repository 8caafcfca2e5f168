package schemas

import (
	"testing"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/cuecontext"
	"cuelang.org/go/cue/parser"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pergola-dev/pergola/schemas/structure"
)

func TestReads(t *testing.T) {
	for _, c := range []struct{ name, rule, object, old, landscape string }{
		{name: "a field", rule: `object.spec.name`, object: `["spec" "name"]`},
		{name: "a field and what is in it", rule: `[object.spec.name.first, object.spec.name]`, object: `["spec" "name"]`},
		{name: "two", rule: `object.spec.b + object.spec.a`, object: `["spec" "a"] ["spec" "b"]`},
		{name: "with a default", rule: `*object.spec.name | ""`, object: `["spec" "name"]`},
		{name: "whether it is there", rule: `[if object.spec.a == _|_ {1}]`, object: `["spec" "a"]`},
		{name: "in a text", rule: `"\(object.metadata.name)"`, object: `["metadata" "name"]`},
		{name: "a fixed index", rule: `object.metadata.labels["a.b/c"].d`, object: `["metadata" "labels" "a.b/c" "d"]`},
		{name: "a computed index", rule: `object.spec[object.kind].x`, object: `["kind"] ["spec"]`},
		{name: "an item", rule: `object.spec.list[0].x`, object: `["spec" "list"]`},
		{name: "the whole", rule: `_f & {of: object}`, object: `[]`},
		{name: "in a loop", rule: `[for i, w in object.spec.workers if w.name == "" {"\(i)"}]`, object: `["spec" "workers"]`},
		{name: "by another declaration", rule: `[for w in _workers {w}]`, object: `["spec" "workers"]`},
		{name: "by a declaration of a declaration", rule: `_names`, object: `["metadata" "name"] ["spec" "workers"]`},
		{name: "a field of that name", rule: `{object: 1, x: y.object, y: {object: 2}}`},
		{name: "before and after", rule: `old.spec.a != object.spec.a`, object: `["spec" "a"]`, old: `["spec" "a"]`},
		{name: "whether there is one before", rule: `[if old == null {1}, if null != old {2}]`},
		{name: "around", rule: `landscape.CloudProfile[object.spec.name]`, object: `["spec" "name"]`, landscape: `["CloudProfile"]`},
		{name: "the call of a function", rule: `strings.HasPrefix(object.kind, "x")`, object: `["kind"]`},
	} {
		t.Run(c.name, func(t *testing.T) {
			file, err := parser.ParseFile("rule.cue", `package rules
rules: "toy/one": violations: `+c.rule+`
_workers: *object.spec.workers | []
_names: [for w in _workers {"\(w.name)-\(object.metadata.name)"}]
_f: {of: _}
`)
			require.NoError(t, err)
			d := newDeclarations()
			require.NoError(t, d.read(file))
			found, _ := d.reach("toy/one")
			assert.Equal(t, c.object, found.object.String())
			assert.Equal(t, c.old, found.old.String())
			assert.Equal(t, c.landscape, found.landscape.String())
		})
	}
}

func TestFilesOfRulesDeclareFields(t *testing.T) {
	for name, text := range map[string]string{
		"embedded": "{a: 1}", "computed": `"\(x)": 1`, "a loop": `for x in [1] {y: x}`, "rules that are none": "rules: 1", "a rule that is none": "rules: {{a: 1}}",
	} {
		t.Run(name, func(t *testing.T) {
			file, err := parser.ParseFile("rule.cue", "package rules\n"+text)
			require.NoError(t, err)
			err = (newDeclarations()).read(file)
			require.Error(t, err)
			assert.Contains(t, err.Error(), "rule.cue:2:")
		})
	}
}

func TestParts(t *testing.T) {
	object := map[string]any{"a": map[string]any{"b": int64(1), "c": []any{"x"}, "d": map[string]any{"e": "f", "g": "h"}}, "n": nil, "t": "text"}
	for name, c := range map[string]struct {
		parts parts
		want  map[string]any
	}{
		"none":               {nil, map[string]any{}},
		"whole":              {parts{{}}, object},
		"two of one":         {parts{{"a", "b"}, {"a", "d", "e"}}, map[string]any{"a": map[string]any{"b": int64(1), "d": map[string]any{"e": "f"}}}},
		"missing":            {parts{{"x", "y"}, {"a", "x", "y"}}, map[string]any{"a": map[string]any{}}},
		"through a text":     {parts{{"t", "x"}}, map[string]any{"t": "text"}},
		"through a null":     {parts{{"n", "x"}}, map[string]any{"n": nil}},
		"a list is a whole":  {parts{{"a", "c"}}, map[string]any{"a": map[string]any{"c": []any{"x"}}}},
		"through a list":     {parts{{"a", "c", "0"}}, map[string]any{"a": map[string]any{"c": []any{"x"}}}},
		"a part of the part": {parts(nil).with([]string{"a", "b"}).with([]string{"a"}), map[string]any{"a": object["a"]}},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, c.want, c.parts.of(object)) })
	}
}

// TestUnitsSayWhatTheWholeSays: rules that see only what they read, compiled apart, find the same as all rules together that
// see the whole object.
func TestUnitsSayWhatTheWholeSays(t *testing.T) {
	s, err := embedded()
	require.NoError(t, err)
	meta, err := s.meta()
	require.NoError(t, err)
	for _, kind := range allKinds(t, s) {
		name := structure.RulesName(kind.GVK)
		if name == "Namespace" || name == "extensions.Cluster" || name == "ControllerDeployment" && kind.GVK.Version == "v1beta1" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			whole := good(t, name).Object
			ctx := cuecontext.New()
			rules, err := s.compileRules(ctx, kind.GVK)
			require.NoError(t, err)
			w := newWorker(s, nil, nil)
			units, err := s.unitsOf(kind.GVK)
			require.NoError(t, err)
			violations := 0
			for i, variant := range variants(whole) {
				if i%7 != 0 {
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
						byID := map[string]ruled{}
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

// TestHeadsSayWhatTheRulesSay: what is read of rules without compiling them is what CUE makes of them.
func TestHeadsSayWhatTheRulesSay(t *testing.T) {
	s, err := embedded()
	require.NoError(t, err)
	meta, err := s.meta()
	require.NoError(t, err)
	seen := map[string]bool{}
	for _, gvk := range s.kinds.known {
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
