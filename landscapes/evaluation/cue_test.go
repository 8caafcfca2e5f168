// SPDX-License-Identifier: Apache-2.0

package evaluation

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// outline returns the places of objects and the findings of a package.
func outline(t *testing.T, files ...string) (objects, findings []string) {
	t.Helper()
	var p Package
	for i, text := range files {
		p.Files = append(p.Files, File{Name: fmt.Sprintf("%c.cue", 'a'+i), Data: []byte(text)})
	}
	result, err := InProcess{}.Evaluate(t.Context(), p)
	require.NoError(t, err)
	for _, o := range result.Objects {
		objects = append(objects, fmt.Sprintf("%s %s", o.Fields["kind"].Text, o.Fields["metadata"].Fields["name"].Text))
	}
	for _, v := range result.Violations {
		assert.Equal(t, RuleCUE, v.Rule)
		findings = append(findings, fmt.Sprintf("%s:%d:%d %s", v.File, v.Line, v.Column, v.Message))
	}
	return objects, findings
}

func ns(name string) string {
	return fmt.Sprintf(`{apiVersion: "v1", kind: "Namespace", metadata: name: %q}`, name)
}

// TestObjectDetection: objects may be at any depth. A field without an object is reported once,
// at the outermost level.
func TestObjectDetection(t *testing.T) {
	const nothing = "this is not a declaration: neither it nor its fields have an apiVersion and a kind"
	const helpers = "; names of helpers begin with _ or #"
	tests := map[string]struct {
		text    string
		objects []string
		want    []string
	}{
		"the file itself":      {strings.Trim(ns("a"), "{}"), []string{"Namespace a"}, nil},
		"a field":              {"x: " + ns("a"), []string{"Namespace a"}, nil},
		"deep":                 {"x: y: z: [{w: " + ns("a") + "}]", []string{"Namespace a"}, nil},
		"a list":               {"[" + ns("a") + "]", []string{"Namespace a"}, nil},
		"helpers":              {"_x: 5\n#Y: {z: 6}\nlet w = 7\n_v: w\no?: 8\nx: " + ns("a"), []string{"Namespace a"}, nil},
		"nothing made":         {"x: [for i in [] {i}]\ny: {for i in [] {\"\\(i)\": i}}", nil, nil},
		"misspelt kind":        {"\nx: {apiVersion: \"v1\", knd: \"Namespace\", metadata: name: \"a\"}", nil, []string{"a.cue:2:1 this is not a declaration: it has an apiVersion but no kind: did you mean kind instead of knd?"}},
		"misspelt in a loop":   {"x: [for n in [\"a\", \"b\"] {apiVersion: \"v1\", Kind: \"ConfigMap\", metadata: name: n}]", nil, []string{"a.cue:1:25 this is not a declaration: it has an apiVersion but no kind: did you mean kind instead of Kind?"}},
		"misspelt apiVersion":  {"x: {apiversion: \"v1\", kind: \"Namespace\"}", nil, []string{"a.cue:1:1 this is not a declaration: it has a kind but no apiVersion: did you mean apiVersion instead of apiversion?"}},
		"both misspelt":        {"x: {apiversion: \"v1\", knd: \"Namespace\"}", nil, []string{"a.cue:1:1 " + nothing + ": did you mean apiVersion instead of apiversion?" + helpers}},
		"one of several":       {"x: {\n\ta: " + ns("a") + "\n\tb: {knd: \"Namespace\", spec: c: d: 5}\n}", []string{"Namespace a"}, []string{"a.cue:3:2 " + nothing + ": did you mean kind instead of knd?" + helpers}},
		"a helper with a name": {"region: \"eu\"\nx: " + ns("a"), []string{"Namespace a"}, []string{"a.cue:1:1 " + nothing + helpers}},
		"a plain value":        {"5", nil, []string{"a.cue:1:1 the file holds a plain value and no declaration"}},
		"too deep":             {"x: " + strings.Repeat("[", 70) + strings.Repeat("]", 70), nil, []string{"a.cue:1:68 values are nested more than 64 deep"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			objects, findings := outline(t, test.text)
			assert.Equal(t, test.objects, objects)
			assert.Equal(t, test.want, findings)
		})
	}
}

// TestErrorMessages: findings have a place and a message, even if CUE gives none.
func TestErrorMessages(t *testing.T) {
	object := "\nx: {apiVersion: \"v1\", kind: \"ConfigMap\", metadata: name: \"a\", data: %s}\n"
	tests := map[string]struct{ text, want string }{
		"large number":      {fmt.Sprintf(object, "9223372036854775808"), "a.cue:2:63 the value is not a number that fits 64 bits"},
		"very large number": {fmt.Sprintf(object, "1.0e400"), "a.cue:2:63 the value is not a number that fits 64 bits"},
		"bytes":             {fmt.Sprintf(object, `'\xff'`), "a.cue:2:63 the value holds bytes that are not text; write them as base64"},
		"structural cycle":  {"\n#T: {next: #T}\nx: #T\n", "it contains itself infinitely"},
		"reserved name":     {"\n__x: 1\n", "a.cue:2:1 identifiers starting with '__' are reserved"},
		"an error":          {"\n\nx: _|_\n", "explicit error"},
		"list of nothing":   {"\nimport \"list\"\n_s: a: {}\nx: {for n, s in _s {(n): {let r = list.Range(s.b, s.b+2, 1), c: \"\\(r[0])\"}}}\n", "the list does not have this item; a field that the list is built from may be missing"},
		"another type":      {"\nimport \"strings\"\nx: strings.ToUpper(1)\n", "an argument of a function has the wrong type"},
		"cycle in a field":  {"\n\nx: y: x\n", "a.cue:3:"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, findings := outline(t, test.text)
			require.NotEmpty(t, findings)
			assert.Contains(t, findings[0], test.want)
			assert.NotContains(t, findings[0], "a.cue:1:1")
			assert.NotContains(t, findings[0], "a.cue:0:0")
		})
	}
}

func TestFilesOfAPackage(t *testing.T) {
	objects, findings := outline(t, "package p\n_name: \"a\"\n", "package p\nx: {apiVersion: \"v1\", kind: \"Namespace\", metadata: name: _name}\ny: 5\n")
	assert.Equal(t, []string{"Namespace a"}, objects)
	assert.Len(t, findings, 1)
	assert.Contains(t, findings[0], "b.cue:3:1 ")
}

func TestLimitsOfAResult(t *testing.T) {
	many := Package{Files: []File{{Name: "a.cue", Data: []byte("import \"list\"\nx: {apiVersion: \"v1\", kind: \"ConfigMap\", metadata: name: \"a\", data: list.Range(0, 100, 1)}")}}, MaxValues: 50}
	result, err := InProcess{}.Evaluate(t.Context(), many)
	require.NoError(t, err)
	require.Len(t, result.Violations, 1)
	assert.Equal(t, "the package has more than 50 values", result.Violations[0].Message)
	assert.Empty(t, result.Objects)
}

// TestInProcessReturnsWithItsContext: it returns although the evaluation continues.
func TestInProcessReturnsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := InProcess{}.Evaluate(ctx, pkg(strings.ReplaceAll(endlessCUE, "3000", "130")))
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

// TestUndefinedFields: the message names a missing field if the package has one of that name
// elsewhere, and suggests a misspelt one.
func TestUndefinedFields(t *testing.T) {
	const head = "import \"strings\"\n_seeds: {a: {region: \"x\", zone: \"1\"}, b: {"
	const tail = "}}\nx: {for n, seed in _seeds {(n): {apiVersion: \"v1\", kind: \"Secret\", metadata: {name: n, labels: {r: strings.ToLower(seed.region), z: seed.zone}}}}}\n"
	for name, test := range map[string]struct{ fields, want string }{
		"misspelt":       {`regoin: "x", zone: "1"`, `the value that it is taken from has no field "region"; did you mean the field "regoin" in line 2 of a.cue?`},
		"left out":       {`zone: "1"`, `the value that it is taken from has no field "region"`},
		"in other cases": {`Region: "x", zone: "1"`, `the field "Region" in line 2 of a.cue`},
		"another one":    {`region: "x"`, `the value that it is taken from has no field "zone"`},
		"as it should":   {`region: "x", zone: "2"`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, found := outline(t, head+test.fields+tail)
			if test.want == "" {
				assert.Empty(t, found)
				return
			}
			require.NotEmpty(t, found)
			assert.Contains(t, found[0], test.want)
			assert.NotContains(t, found[0], "quotes")
		})
	}
	_, found := outline(t, "a: {b: 1}\nx: {apiVersion: \"v1\", kind: \"Secret\", metadata: name: \"a\", stringData: password: a.hunter2}\n")
	require.NotEmpty(t, found)
	assert.NotContains(t, strings.Join(found, " "), "hunter2", "it may be a value without quotes")
}
