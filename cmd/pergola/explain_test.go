// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pergola-dev/pergola/schemas"
	"github.com/pergola-dev/pergola/schemas/rulebook"
)

func TestExplain(t *testing.T) {
	tests := map[string]struct {
		args   []string
		code   int
		stdout []string
		stderr string
	}{
		"a field":           {[]string{"Shoot.spec.provider.workers"}, 0, []string{"TYPE:      list of objects", "shoot/worker-names-unique", "maximum ", "whole number, required"}, ""},
		"a default":         {[]string{"Shoot.spec.purpose"}, 0, []string{`DEFAULT:   "evaluation"`, "VALUES:    evaluation, "}, ""},
		"a kind":            {[]string{"seed"}, 0, []string{"KIND:      Seed (core.gardener.cloud/v1beta1, cluster-scoped)", "seed/name"}, ""},
		"a kind of another": {[]string{"extensions.Bastion"}, 0, []string{"extensions.gardener.cloud/v1alpha1"}, ""},
		"a rule":            {[]string{"shoot/purpose"}, 0, []string{"RULE:      shoot/purpose", "ABOUT:     Shoot: spec.purpose", "WRITTEN:   schemas/rules/shoot/"}, ""},
		"the structure":     {[]string{"structure"}, 0, []string{"RULE:      structure", "ABOUT:     every kind: the whole object"}, ""},
		"a rule of files":   {[]string{"landscape/duplicate"}, 0, []string{"RULE:      landscape/duplicate (in a landscape)", "ABOUT:     files: metadata.name", "WRITTEN:   landscapes/layer.go"}, ""},
		"of landscape.yaml": {[]string{"Landscape.spec.images"}, 0, []string{"landscape/image"}, ""},
		"no default":        {[]string{"Shoot.spec.provider.workers"}, 0, []string{"REQUIRED:  no\nFORM: "}, ""},
		"rules of a kind":   {[]string{"--rules", "Quota"}, 0, []string{"quota/scope", "every kind"}, ""},
		"all rules":         {[]string{"--rules"}, 0, []string{"quota/scope", "shoot/purpose"}, ""},
		"a change":          {[]string{"Seed.spec.ingress.domain"}, 0, []string{"(on change)"}, ""},
		"no question":       {nil, 2, nil, "give a kind"},
		"unknown kind":      {[]string{"Shot"}, 2, nil, `there is no kind "Shot"; did you mean "Shoot"?`},
		"unknown field":     {[]string{"Shoot.spec.regoin"}, 2, nil, `Shoot.spec has no field "regoin"; did you mean "region"?`},
		"unknown rule":      {[]string{"shoot/porpose"}, 2, nil, `there is no rule "shoot/porpose"; did you mean "shoot/purpose"?`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			o := pergola(t, append([]string{"explain"}, test.args...)...)
			assert.Equal(t, test.code, o.code, "%+v", o)
			for _, text := range test.stdout {
				assert.Contains(t, o.stdout, text)
			}
			assert.Contains(t, o.stderr, test.stderr)
		})
	}
}

func TestExplainAsJSON(t *testing.T) {
	e := decode[rulebook.Explanation](t, pergola(t, "explain", "Shoot.spec.kubernetes.version", "-o", "json"))
	assert.Equal(t, "spec.kubernetes.version", e.Field)
	require.NotEmpty(t, e.Rules)

	rules := decode[[]schemas.Rule](t, pergola(t, "explain", "landscape/domains-unique", "-o", "json"))
	require.Len(t, rules, 5)
	assert.NotEmpty(t, rules[0].Fields)

	rules = decode[[]schemas.Rule](t, pergola(t, "explain", "--rules", "-o", "json"))
	assert.Greater(t, len(rules), 300)

	o := pergola(t, "explain", "Shot", "-o", "json")
	assert.Equal(t, 2, o.code)
	assert.Contains(t, decode[errorResult](t, o).Error.Message, "did you mean")
}

func TestExplainCompletion(t *testing.T) {
	o := pergola(t, "__complete", "explain", "Shoot.spec.ku")
	assert.Contains(t, o.stdout, "Shoot.spec.kubernetes\n")
	o = pergola(t, "__complete", "explain", "extensions.W")
	assert.Contains(t, o.stdout, "extensions.Worker\n")
}
