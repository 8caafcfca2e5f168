// SPDX-License-Identifier: Apache-2.0

package evaluation

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestAttributesOfTheLoader: attributes of the cue command are findings.
func TestAttributesOfTheLoader(t *testing.T) {
	const object = "x: {apiVersion: \"v1\", kind: \"Namespace\", metadata: name: \"x\"}\n"
	tests := map[string]struct {
		text string
		want []string
	}{
		"@if":                       {"@if(prod)\n\npackage p\n" + object, []string{"a.cue:1:1 " + attributeErrors["if"]}},
		"@if that would hold":       {"@if(!prod)\npackage p\n" + object, []string{"a.cue:1:1 " + attributeErrors["if"]}},
		"@if without a package":     {"// a comment\n@if(a && b)\n" + object, []string{"a.cue:2:1 " + attributeErrors["if"]}},
		"@if too late":              {"package p\n@if(prod)\n" + object, []string{"a.cue:2:1 " + attributeErrors["if"]}},
		"@tag":                      {"package p\nr: *\"a\" | string @tag(region)\n" + object, []string{"a.cue:2:18 " + attributeErrors["tag"]}},
		"@tag deep in an object":    {"x: {apiVersion: \"v1\", kind: \"Namespace\", metadata: name: *\"x\" | string @tag(name,type=string)}\n", []string{"a.cue:1:72 " + attributeErrors["tag"]}},
		"@extern and @embed":        {"@extern(embed)\npackage p\n_a: _ @embed(file=landscape.yaml)\n" + object, []string{"a.cue:1:1 " + attributeErrors["extern"], "a.cue:3:7 " + attributeErrors["embed"]}},
		"@embed alone":              {"_a: _ @embed(glob=*.yaml)\n" + object, []string{"a.cue:1:7 " + attributeErrors["embed"]}},
		"@ignore() too late":        {"package p\n@ignore()\n" + object, []string{"a.cue:2:1 " + attributeErrors["ignore"]}},
		"@ignore() at a field":      {"package p\nx: {apiVersion: \"v1\", kind: \"Namespace\", metadata: name: \"x\"} @ignore()\n", []string{"a.cue:2:63 " + attributeErrors["ignore"]}},
		"@ignore() of one file":     {"@ignore()\npackage p\n" + object, []string{"a.cue:1:1 @ignore() leaves the file out, so it declares nothing; remove the attribute"}},
		"attributes of other tools": {"@if2(a)\npackage p\nx: {apiVersion: \"v1\", kind: \"Namespace\", metadata: name: \"x\" @go(Name)}\n", nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, findings := outline(t, test.text)
			assert.Equal(t, test.want, findings)
		})
	}
}

func TestHeader(t *testing.T) {
	tests := map[string]struct {
		text    string
		clause  string
		ignored bool
	}{
		"a package":                {"// c\n\npackage p\na: 1\n", "p", false},
		"none":                     {"a: 1\n", "", false},
		"the package without name": {"package _\na: 1\n", "", false},
		"ignored":                  {"@ignore()\n\npackage p\n", "p", true},
		"ignored after a comment":  {"// why\n@ignore()\npackage p\n", "p", true},
		"ignored beside another":   {"@if(x)\n@ignore()\npackage p\n", "p", true},
		"ignored without package":  {"@ignore()\na: 1\n", "", true},
		"too late":                 {"package p\n@ignore()\n", "p", false},
		"not CUE":                  {"package\x00", "", false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			clause, ignored := ParseHeader(File{Name: "a.cue", Data: []byte(test.text)})
			assert.Equal(t, test.clause, clause)
			assert.Equal(t, test.ignored, ignored)
		})
	}
}
