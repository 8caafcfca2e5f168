package schemas

import (
	"io/fs"
	"os"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

// TestRulesWithFaults: whoever writes a rule that CUE does not understand is told file, line and rule.
func TestRulesWithFaults(t *testing.T) {
	const head = "package rules\n\nrules: \"shoot/good\": {title: \"a\", doc: \"b\", source: \"c\", violations: []}\n\nrules: \"shoot/bad\": {\n\ttitle: \"a\"\n\tdoc:   \"b\"\n"
	tests := map[string]struct{ rest, want string }{
		"syntax":        {"\tsource: \"c\"\n\tviolations: [if ]\n}\n", "schemas/rules/shoot/new.cue:9:18: rule shoot/bad: "},
		"unknown name":  {"\tsource: \"c\"\n\tviolations: [if objct.spec != _|_ {path: \"a\", type: \"Invalid\", message: \"b\"}]\n}\n", "schemas/rules/shoot/new.cue:9:18: rule shoot/bad: reference \"objct\" not found"},
		"conflict":      {"\tsource: 5\n\tviolations: []\n}\n", "schemas/rules/shoot/new.cue:8:10: rule shoot/bad: "},
		"no source":     {"\tviolations: []\n}\n", "schemas/rules/shoot/new.cue:5:1: rule shoot/bad: field not found: source"},
		"unknown field": {"\tsource: \"c\"\n\tviolations: []\n\tauthor: \"d\"\n}\n", "schemas/rules/shoot/new.cue:10:2: rule shoot/bad: "},
		"wrong type":    {"\tsource: \"c\"\n\tviolations: [{path: \"spec\", type: \"Wrong\", message: \"b\"}]\n}\n", "schemas/rules/shoot/new.cue:9:36: rule shoot/bad: "},
		"at evaluation": {"\tsource: \"c\"\n\tviolations: [for x in object.spec.region {path: \"spec\", type: \"Invalid\", message: \"b\"}]\n}\n", "schemas/rules/shoot/new.cue:9:24: rule shoot/bad: "},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			tree := fstest.MapFS{"rules/shoot/new.cue": {Data: []byte(head + test.rest)}}
			require.NoError(t, fs.WalkDir(files, ".", func(path string, entry fs.DirEntry, err error) error {
				if err == nil && !entry.IsDir() {
					data, readErr := os.ReadFile(path)
					tree[path], err = &fstest.MapFile{Data: data}, readErr
				}
				return err
			}))
			kinds, err := structuralKinds()
			require.NoError(t, err)
			s, err := newSources(kinds, tree)
			require.NoError(t, err)
			_, err = s.validate(t.Context(), []Input{{Object: good(t, "Shoot")}}, Options{})
			require.ErrorContains(t, err, test.want)
			t.Log(err)
		})
	}
}
