// SPDX-License-Identifier: Apache-2.0

package schemas

import (
	"io/fs"
	"os"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestFaultyRules checks that the error about a faulty rule names file, line and rule.
func TestFaultyRules(t *testing.T) {
	tests := map[string]struct{ rest, want string }{
		"syntax":                   {"\tsource: \"c\"\n\tviolations: [if ]\n}\n", "schemas/rules/shoot/new.cue:9:18: rule shoot/bad: "},
		"unknown name":             {"\tsource: \"c\"\n\tviolations: [if objct.spec != _|_ {path: \"a\", type: \"Invalid\", message: \"b\"}]\n}\n", "schemas/rules/shoot/new.cue:9:18: rule shoot/bad: reference \"objct\" not found"},
		"conflict":                 {"\tsource: 5\n\tviolations: []\n}\n", "schemas/rules/shoot/new.cue:8:10: rule shoot/bad: "},
		"no source":                {"\tviolations: []\n}\n", "schemas/rules/shoot/new.cue:5:1: rule shoot/bad: field not found: source"},
		"unknown field":            {"\tsource: \"c\"\n\tviolations: []\n\tauthor: \"d\"\n}\n", "schemas/rules/shoot/new.cue:10:2: rule shoot/bad: "},
		"wrong type":               {"\tsource: \"c\"\n\tviolations: [{path: \"spec\", type: \"Wrong\", message: \"b\"}]\n}\n", "schemas/rules/shoot/new.cue:9:36: rule shoot/bad: "},
		"wrong type, not violated": {"\tsource: \"c\"\n\tviolations: [if object.spec.region == \"nowhere\" {path: \"spec\", type: \"Invlaid\", message: \"b\"}]\n}\n", `schemas/rules/shoot/new.cue:9:71: rule shoot/bad: "Invlaid" is not a type of an error; write one of "Required", "Invalid"`},
		"wrong type of a fault":    {"\tsource: \"c\"\n\tviolations: [for fault in [if object.spec.region == \"nowhere\" {at: \"spec\", type: \"NotFound\", message: \"b\"}] {path: fault.at, type: fault.type, message: fault.message}]\n}\n", `schemas/rules/shoot/new.cue:9:83: rule shoot/bad: "NotFound" is not a type of an error`},
		"type that cannot be told": {"\tsource: \"c\"\n\tviolations: [if object.spec.region == \"nowhere\" {path: \"spec\", type: \"Inv\" + \"alid\", message: \"b\"}]\n}\n", "schemas/rules/shoot/new.cue:9:71: rule shoot/bad: a type must be written as text"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := sourcesWithRule(t, faultyRuleHeader+test.rest)
			_, err := s.listRules()
			require.ErrorContains(t, err, test.want)
			t.Log(err)
			// evaluation does not read fields that are only for people
			if name == "syntax" || name == "unknown name" {
				_, err = s.validate(t.Context(), []Input{{Object: validObject(t, "Shoot")}}, Options{})
				require.ErrorContains(t, err, test.want)
			}
		})
	}
}

// TestFailingRule checks that a fault that CUE finds only with an object is a finding of that
// rule, beside the findings of other rules.
func TestFailingRule(t *testing.T) {
	s := sourcesWithRule(t, faultyRuleHeader+"\tsource: \"c\"\n\tviolations: [for x in object.spec.region {path: \"spec\", type: \"Invalid\", message: \"b\"}]\n}\n")
	shoot := validObject(t, "Shoot")
	shoot.Object["spec"].(map[string]any)["cloudProfile"] = nil
	found, err := s.validate(t.Context(), []Input{{Object: shoot}}, Options{})
	require.NoError(t, err)
	var rules []string
	for _, v := range found {
		rules = append(rules, v.Rule)
		if v.Rule == "shoot/bad" {
			assert.Equal(t, SeverityError, v.Severity)
			assert.Equal(t, "cannot be checked, because the rule fails (schemas/rules/shoot/new.cue:9:24): a fault of Pergola, not of the object; please report it with the object", v.Message)
		}
	}
	assert.Subset(t, rules, []string{"shoot/bad", "shoot/cloud-profile-required"})
}

// faultyRuleHeader begins a file with a good rule and a bad one.
const faultyRuleHeader = "package rules\n\nrules: \"shoot/good\": {title: \"a\", doc: \"b\", source: \"c\", fields: [\"\"], violations: []}\n\nrules: \"shoot/bad\": {\n\ttitle: \"a\", fields: [\"\"]\n\tdoc:   \"b\"\n"

// sourcesWithRule returns all rules and those of another file.
func sourcesWithRule(t *testing.T, text string) *sources {
	t.Helper()
	tree := fstest.MapFS{"rules/shoot/new.cue": {Data: []byte(text)}}
	require.NoError(t, fs.WalkDir(schemaFiles, ".", func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			data, readErr := os.ReadFile(path)
			tree[path], err = &fstest.MapFile{Data: data}, readErr
		}
		return err
	}))
	s, err := newSources(embeddedKinds(), tree)
	require.NoError(t, err)
	return s
}

// TestRuleImports checks that rules may import only the standard library of CUE.
func TestRuleImports(t *testing.T) {
	for _, name := range []string{"list", "math", "net", "regexp", "strconv", "strings", "time"} {
		use := map[string]string{"list": "list.Contains([1], 1)", "math": "math.Abs(-1)", "net": "net.IP(\"10.0.0.1\")", "regexp": "regexp.Match(\"a\", \"a\")",
			"strconv": "strconv.Atoi(\"1\")", "strings": "strings.HasPrefix(\"a\", \"a\")", "time": "time.ParseDuration(\"1h\")"}[name]
		s := sourcesWithRule(t, "package rules\n\nimport \""+name+"\"\n\n_used: "+use+"\n")
		_, err := s.listRules()
		assert.NoError(t, err, name)
	}
	_, err := sourcesWithRule(t, "package rules\n\nimport \"example.org/other\"\n\n_used: other.a\n").listRules()
	assert.ErrorContains(t, err, "example.org/other")
}
