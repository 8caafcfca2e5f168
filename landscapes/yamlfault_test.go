// SPDX-License-Identifier: Apache-2.0

package landscapes

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestCauseOfBrokenYAML: a finding points at the place to edit (marked by «), not where the parser
// gave up.
func TestCauseOfBrokenYAML(t *testing.T) {
	const head = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n"
	tests := map[string]struct{ text, want string }{
		"double quote":             {head + "data:\n  a: «\"one\n  b: two\n  c: three\n", "the quote that opens here is not closed"},
		"double quote, more after": {head + "data:\n  a: «\"one\n  b: \"two\"\n  c: \"three\"\n", "the quote that opens here is not closed"},
		"single quote":             {head + "data:\n  a: «'one\n  b: 'two'\n  c: three\n", "the quote that opens here is not closed"},
		"quote in a list":          {head + "x:\n- «\"one\n- two\n- three: four\n", "the quote that opens here is not closed"},
		"quote in brackets":        {head + "data: {a: «\"one, b: two}\nx: y\n", "the quote that opens here is not closed"},
		"bracket":                  {head + "x: «[1, 2\ny: 3\nz:\n  a: b\n", "the bracket [ that opens here is not closed"},
		"brace":                    {head + "spec:\n  x: «{a: 1\n  y: {b: 2}\n", "the bracket { that opens here is not closed"},
		"brace at the end":         {head + "spec: «{\n", "the bracket { that opens here is not closed"},
		"wrong bracket":            {head + "x: {a: [1, 2«}\n", "} does not close [ of line 7"},
		"one bracket too many":     {head + "x: [1, 2]«]\ny: 1\n", "text follows the end of the value"},
		"comma":                    {head + "x: [\"a\" «\"b\"]\n", "a comma is missing between two values"},
		"one space too few":        {head + "spec:\n  a: 1\n  b:\n    c: 1\n «d: 2\n  e: 3\n", "the line is indented by 1 space, where no field or list is open"},
		"one space too few, deep":  {head + "spec:\n  workers:\n    - name: a\n      min: 1\n     «max: 2\n", "the line is indented by 5 spaces, where no field or list is open"},
		"text of a block":          {head + "spec:\n- a: |\n  «- b\n  - c\n", "the block of text of line "},
		"one space too many":       {head + "spec:\n  a: 1\n   «b: 2\n", "the line is indented by 3 spaces, but the field before it already has a value"},
		"one space too many, item": {head + "x:\n- a: 1\n   «b: 2\n", "the line is indented by 3 spaces, but the field before it already has a value"},
		"list below a value":       {head + "x: 1\n  «- a: b\n", "the line is indented by 2 spaces, but the field before it already has a value"},
		"merge conflict":           {head + "«<<<<<<< HEAD\ndata: {a: b}\n=======\ndata: {a: c}\n>>>>>>> main\n", "a merge conflict was left here"},
		"merge conflict, inside":   {head + "data:\n«<<<<<<< HEAD\n  a: b\n=======\n  a: c\n>>>>>>> main\n", "a merge conflict was left here"},
		"end of a merge conflict":  {head + "data:\n  a: c\n«>>>>>>> main\n", "a merge conflict was left here"},
		"no-break spaces":          {head + "data:\n«\u00a0\u00a0a: b\n  c: d\n", "a no-break space (U+00A0) stands where YAML needs a space"},
		"no-break space, colon":    {head + "data:\n  a:«\u00a0b\n  c: d\n", "a no-break space (U+00A0) stands where YAML needs a space"},
		"tab":                      {head + "data:\n«\ta: b\n", "a tab indents the line; YAML allows only spaces"},
		"smart quotes":             {head + "data:\n  a: «“b: c”\n", "YAML does not accept these quotes"},
		"no colon":                 {head + "«data\n  a: b\n", "a colon is missing"},
		"no colon, with a value":   {head + "data:\n  a: b\n  «c d\n  e: f\n", "a colon is missing"},
		"no space after the colon": {head + "data:\n  a: b\n  c«:d\n  e: f\n", "a space is missing after the colon"},
		"no space after the dash":  {head + "x:\n  - a: 1\n  «-b: 2\n", "a space is missing after the dash"},
		"colon in the text":        {head + "data:\n  a: note«: this\n", "the value holds a colon and a space"},
		"a sign":                   {head + "data:\n  a: «@b\n", "text that begins with @ needs quotes"},
	}
	require.Greater(t, len(tests), 20)
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			before, _, marked := strings.Cut(test.text, "«")
			require.True(t, marked)
			line := strings.Count(before, "\n") + 1
			column := len([]rune(before[strings.LastIndex(before, "\n")+1:])) + 1
			_, violations := parse(t, "x.yaml", "# first\n---\n"+strings.Replace(test.text, "«", "", 1), Options{})
			require.Len(t, violations, 1)
			got := summaries(violations)[0]
			assert.True(t, strings.HasPrefix(got, fmt.Sprintf("x.yaml:%d:%d Invalid ", line+2, column)), got)
			assert.Contains(t, got, test.want)
		})
	}
}

// TestTextAfterObjects: text after an object is read, or reported at its place.
func TestTextAfterObjects(t *testing.T) {
	object := func(name string) string {
		return `{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "` + name + `"}}`
	}
	flow := func(name string) string { return "{apiVersion: v1, kind: Namespace, metadata: {name: " + name + "}}\n" }
	const lost = " Invalid text follows the object, and would be lost; if it is another object, put a line with --- before it"
	tests := map[string]struct {
		file, text string
		found      []string
		want       []string
	}{
		"JSON lines":                {"a.json", object("a") + "\n" + object("b") + "\n", []string{"a", "b"}, nil},
		"JSON on one line":          {"a.json", object("a") + object("b") + " " + object("c"), []string{"a", "b", "c"}, nil},
		"JSON in YAML":              {"a.yaml", "---\n" + object("a") + "\n" + object("b") + "\n---\n" + namespace("c"), []string{"a", "b", "c"}, nil},
		"text after JSON":           {"a.json", object("a") + "\ngarbage here\n", nil, []string{"a.json:2:1 Invalid this is not JSON: a value is expected and \"g\" is found; put text in double quotes"}},
		"a brace after JSON":        {"a.json", object("a") + "\n}\n", nil, []string{"a.json:2:1 Invalid this is not JSON: the closing \"}\" has no opening one"}},
		"two flow mappings":         {"a.yaml", flow("a") + flow("b"), nil, []string{"a.yaml:2:1" + lost}},
		"text after a flow mapping": {"a.yaml", flow("a") + "b: c\n", nil, []string{"a.yaml:2:1" + lost}},
		"an object after ...":       {"a.yaml", namespace("a") + "...\n" + namespace("b"), []string{"a", "b"}, nil},
		"text after ...":            {"a.yaml", namespace("a") + "...\nrest\n", []string{"a"}, []string{"a.yaml:6:1 Invalid must be an object with apiVersion, kind and metadata"}},
		"text beside ...":           {"a.yaml", namespace("a") + "... rest\n", []string{"a"}, []string{"a.yaml:5:5 Invalid must be an object with apiVersion, kind and metadata"}},
		"a comment after ...":       {"a.yaml", namespace("a") + "... # end\n# really\n", []string{"a"}, nil},
		"escapes of JSON":           {"a.json", `{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a", "annotations": {"x": "a\/b \ud83d\ude00"}}}`, []string{"a"}, nil},
		"a field twice in JSON":     {"a.json", "{\n  \"kind\": \"A\", \"kind\": \"B\"}", nil, []string{`a.json:2:16 Invalid the field "kind" is written twice: first in line 2`}},
		"an anchor twice":           {"a.yaml", namespace("a") + "x: &a 1\ny: &a 2\nz: *a\n", nil, []string{"a.yaml:6:4 Invalid the anchor is defined twice: first in line 5; give each its own name"}},
		"an invisible name":         {"a.yaml", namespace("a") + "\u200bx: 1\n", nil, []string{"a.yaml:5:1 Invalid the name of the field contains a zero-width space (U+200B), which is invisible or looks like a space; retype the name"}},
		"an invisible value":        {"a.yaml", "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: a\u00a0\n", nil, []string{"a.yaml:4:9 Invalid the value ends with a no-break space (U+00A0), which is invisible; remove it, or put the value in quotes"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			found, violations := parse(t, test.file, test.text, Options{})
			assert.Equal(t, test.want, summaries(violations))
			var names []string
			for i := range found {
				names = append(names, found[i].Name())
			}
			assert.Equal(t, test.found, names)
		})
	}
	found, _ := parse(t, "a.json", tests["escapes of JSON"].text, Options{})
	assert.Equal(t, map[string]string{"x": "a/b 😀"}, found[0].Object().GetAnnotations())
	assert.Equal(t, strings.Index(tests["escapes of JSON"].text, `"a\/b`)+1, found[0].Position("metadata.annotations.x").Column)
}

// TestFaultsOfJSON: a finding describes a fault in plain words and names its place.
func TestFaultsOfJSON(t *testing.T) {
	const object = `{"apiVersion": "v1", "kind": "Namespace", "metadata": `
	for text, want := range map[string]string{
		object + `{"name": "a"},}`:                      `68 there is a comma before the closing "}"; remove the comma`,
		object + `{"name": "a", "finalizers": ["x",]}}`: `87 there is a comma before the closing "]"; remove the comma`,
		object + `{"name": "a",, "x": 1}}`:              `68 two commas follow each other; remove one`,
		object + `{"name": "a"}} // x`:                  `70 comments are not allowed; remove the comment, or rename the file to .yaml and begin comments with #`,
		object + `{"name": 'a'}}`:                       `64 text begins with "'"; put it in double quotes (")`,
		object + `{name: "a"}}`:                         `56 the name of a field is expected, in double quotes, and "n" is found`,
		object + `{"name" "a"}}`:                        `63 a colon is expected after the name of a field and "\"" is found`,
		object + `{"name": "a" "x": 1}}`:                `68 a comma or a closing brace is expected and "\"" is found`,
		object + `{"finalizers": ["a" "b"]}}`:           `75 a comma or a closing bracket is expected and "\"" is found`,
		object + `{"name": a}}`:                         `64 a value is expected and "a" is found; put text in double quotes`,
		object + `{"name": }}`:                          `64 a field has no value: "}" follows the colon; write a value, or null`,
		object + `{"name": "a"}, "x": True}`:            `75 a value is expected and "T" is found; put text in double quotes`,
		object + `{"name": "a"}, "x": truth}`:           `78 a word is not true, false or null; put text in double quotes`,
		object + `{"name": "a"}, "x": .5}`:              `75 a number does not begin with "."; begin it with a digit or a minus sign`,
		object + `{"name": "a"}, "x": 1.}`:              `77 `,
		object + `{"name": "a\qb"}}`:                    `67 text has a backslash before "q"`,
		object + "{\"name\": \"a\n\"}}":                 `66 text has a line break or a control character in it`,
		object + `{"name": "a"`:                         `66 the file ends too early: a closing brace, bracket or quotation mark is missing`,
	} {
		found := findJSONFault([]byte(text))
		column, rest, _ := strings.Cut(want, " ")
		said := fmt.Sprintf("%d %s", found.column, found.message)
		assert.True(t, strings.HasPrefix(said, column+" this is not JSON: "+rest), "%s\n%s", text, said)
		assert.NotContains(t, said, "invalid character")
	}
}
