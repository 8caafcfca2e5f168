// SPDX-License-Identifier: Apache-2.0

package landscapes

import (
	"fmt"
	"regexp"
	"testing"
	"testing/fstest"

	"filippo.io/age"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func recipient(t *testing.T) string {
	t.Helper()
	identity, err := age.GenerateX25519Identity()
	require.NoError(t, err)
	return identity.Recipient().String()
}

func TestSopsRules(t *testing.T) {
	a := recipient(t)
	secret, err := age.GenerateX25519Identity()
	require.NoError(t, err)
	rule := func(fields string) string { return "creation_rules:\n- " + fields + "\n" }
	for name, tt := range map[string]struct {
		text, want string
		ignored    bool
	}{
		"empty":                  {"", "", false},
		"comments":               {"# nothing\n", "", false},
		"a rule":                 {rule(`{path_regex: '\.yaml$', encrypted_regex: ^(data|stringData)$, age: ` + a + `}`), "", false},
		"several keys":           {rule("age: [" + a + ", '" + a + "," + a + "']"), "", false},
		"groups":                 {rule("{shamir_threshold: 1, key_groups: [{age: [" + a + "], pgp: [x], merge: [{age: [" + a + "]}]}]}"), "", false},
		"anchors":                {"keys:\n- &me " + a + "\ncreation_rules:\n- age: [*me]\n", "", false},
		"other rules":            {"destination_rules: []\nstores: {yaml: {indent: 2}}\n", "", false},
		"bracket":                {"creation_rules:\n- path_regex: 'secrets(\\.yaml'\n  age: " + a + "\n", "2:15: path_regex does not compile, so sops fails: missing closing )", false},
		"another expression":     {rule("{encrypted_regex: '*', age: " + a + "}"), "2:21: encrypted_regex does not compile", false},
		"no key at all":          {rule("path_regex: x"), "2:3: the rule names no key, so its files could not be decrypted", false},
		"an empty key":           {rule("age: ''"), "2:3: the rule names no key", false},
		"no key in groups":       {rule("key_groups: []"), "2:3: the rule names no key", false},
		"of a cloud":             {rule("hc_vault_transit_uri: https://v.example.org/v1/x/keys/y"), "", false},
		"repetition":             {rule("{unencrypted_regex: 'a{2,1}', age: " + a + "}"), "unencrypted_regex does not compile", false},
		"no YAML":                {"creation_rules:\n- path_regex: [x\n", "this is not YAML", false},
		"tab":                    {"creation_rules:\n\t- age: x\n", "2:1: ", false},
		"no list":                {"creation_rules: {age: " + a + "}\n", "1:17: creation_rules must be a list", false},
		"no rule":                {"creation_rules: [" + a + "]\n", "must be an object with path_regex", false},
		"no key":                 {rule("age: age14x4uwhak2"), `2:8: "age14x4uwhak2" is not a public age key: it begins like one`, false},
		"another key":            {rule("age: [" + a + ", me@example.org]"), `"me@example.org" is not a public age key, which begins with age1`, false},
		"a private key":          {rule("age: " + secret.String()), "2:8: this is a private age key", false},
		"no key in a group":      {rule("key_groups: [{age: [age1x]}]"), `"age1x" is not a public age key`, false},
		"misspelt expression":    {rule("{path_regx: x, age: " + a + "}"), `2:4: sops ignores the field "path_regx", which it does not know; did you mean "path_regex"?`, true},
		"misspelt rules":         {"creation_rule: []\n", `1:1: sops ignores the field "creation_rule", which it does not know; did you mean "creation_rules"?`, true},
		"misspelt key":           {rule("agee: " + a), `did you mean "age"?`, true},
		"a field of nobody":      {rule("{comment: x, age: " + a + "}"), `sops ignores the field "comment", which it does not know; it knows path_regex, kms`, true},
		"misspelt in a group":    {rule("key_groups: [{ages: [" + a + "]}]"), `sops ignores the field "ages", which it does not know; did you mean "age"?`, true},
		"with one that is known": {rule("{encrypted_regexp: x, age: " + a + "}"), `did you mean "encrypted_regex"?`, true},
	} {
		t.Run(name, func(t *testing.T) {
			_, problems := ParseSopsRules([]byte(tt.text))
			if tt.want == "" {
				assert.Empty(t, problems)
				return
			}
			require.Len(t, problems, 1)
			assert.Contains(t, fmt.Sprintf("%d:%d: %s", problems[0].Line, problems[0].Column, problems[0].Message), tt.want)
			assert.Equal(t, tt.ignored, problems[0].IsIgnored)
			assert.NotContains(t, problems[0].Message, secret.String())
		})
	}
}

// TestCheckSops: the first matching rule of the closest .sops.yaml applies to a file.
func TestCheckSops(t *testing.T) {
	a, b := recipient(t), recipient(t)
	sealed := func(name string, recipients ...string) string {
		text := "apiVersion: v1\nkind: Secret\nmetadata: {name: " + name + ", namespace: garden}\nstringData: {}\nsops:\n  mac: x\n  age:\n"
		for _, r := range recipients {
			text += "  - {enc: x, recipient: " + r + "}\n"
		}
		return text
	}
	const part = "encrypted_regex: ^(data|stringData)$"
	rules := func(keys string) string { return "creation_rules:\n- age: " + keys + "\n  " + part + "\n" }
	for name, tt := range map[string]struct {
		files map[string]string
		want  []string
	}{
		"no rules":           {map[string]string{"l/a.yaml": sealed("a", a)}, nil},
		"as the rule says":   {map[string]string{"l/.sops.yaml": rules(a), "l/a.yaml": sealed("a", a)}, nil},
		"in another order":   {map[string]string{"l/.sops.yaml": rules("[" + a + "," + b + "]"), "l/a.yaml": sealed("a", b, a)}, nil},
		"nothing encrypted":  {map[string]string{"l/.sops.yaml": rules(a)}, nil},
		"another key":        {map[string]string{"l/.sops.yaml": rules(b), "l/a.yaml": sealed("a", a)}, []string{"a.yaml:8: the file is not encrypted for " + b + ", which cannot open it, and is still encrypted for " + a + ", unlike the rule in .sops.yaml:2: run `sops updatekeys a.yaml`"}},
		"one more":           {map[string]string{"l/.sops.yaml": rules("[" + a + "," + b + "]"), "l/a.yaml": sealed("a", a)}, []string{"a.yaml:8: the file is not encrypted for " + b + ", which cannot open it, unlike"}},
		"one less":           {map[string]string{"l/.sops.yaml": rules(a), "l/a.yaml": sealed("a", a, b)}, []string{"a.yaml:8: the file is still encrypted for " + b + ", unlike"}},
		"each file once":     {map[string]string{"l/.sops.yaml": rules(a), "l/a.yaml": sealed("a", b) + "---\n" + sealed("b", b), "l/c.yaml": sealed("c", b)}, []string{"a.yaml:8: ", "c.yaml:8: "}},
		"at the top":         {map[string]string{".sops.yaml": rules(b), "l/a.yaml": sealed("a", a)}, []string{"unlike the rule in ../.sops.yaml:2"}},
		"the closest one":    {map[string]string{".sops.yaml": rules(b), "l/.sops.yaml": rules(b), "l/in/.sops.yaml": rules(a), "l/in/a.yaml": sealed("a", a)}, nil},
		"the first match":    {map[string]string{"l/.sops.yaml": "creation_rules:\n- {path_regex: ^in/, " + part + ", age: " + a + "}\n- age: " + b + "\n  " + part + "\n", "l/in/a.yaml": sealed("a", a), "l/b.yaml": sealed("b", a)}, []string{"b.yaml:8: "}},
		"path from the top":  {map[string]string{".sops.yaml": "creation_rules:\n- {path_regex: ^l/a, " + part + ", age: " + a + "}\n- age: " + b + "\n  " + part + "\n", "l/a.yaml": sealed("a", a)}, nil},
		"for no file":        {map[string]string{"l/.sops.yaml": "creation_rules:\n- {path_regex: ^in/, " + part + ", age: " + a + "}\n", "l/b.yaml": sealed("b", b)}, []string{"b.yaml:1: no rule in .sops.yaml matches the file, so `sops updatekeys` cannot change its keys"}},
		"keys of others":     {map[string]string{"l/.sops.yaml": "creation_rules:\n- pgp: x\n  " + part + "\n", "l/b.yaml": sealed("b", b)}, []string{".sops.yaml:2: the rule names no age key, and Pergola opens files only with age keys"}},
		"whole files":        {map[string]string{"l/.sops.yaml": "creation_rules:\n- age: " + a + "\n"}, []string{".sops.yaml:2: sops encrypts whole files by this rule"}},
		"nothing of them":    {map[string]string{"l/.sops.yaml": "creation_rules:\n- age: " + a + "\n  encrypted_regex: ^(dataa|stringDat)$\n"}, []string{".sops.yaml:2: encrypted_regex matches neither data nor stringData"}},
		"one of them":        {map[string]string{"l/.sops.yaml": "creation_rules:\n- age: " + a + "\n  encrypted_regex: ^(dta|stringData)$\n"}, []string{".sops.yaml:2: encrypted_regex matches \"dta\", which is misspelt"}},
		"all but some":       {map[string]string{"l/.sops.yaml": "creation_rules:\n- age: " + a + "\n  unencrypted_suffix: _pt\n"}, []string{".sops.yaml:2: sops encrypts all but some fields by this rule"}},
		"data alone":         {map[string]string{"l/.sops.yaml": "creation_rules:\n- age: " + a + "\n  encrypted_regex: ^(data)$\n"}, []string{".sops.yaml:2: encrypted_regex matches data but not stringData, so sops does not encrypt the values there"}},
		"never reached":      {map[string]string{"l/.sops.yaml": rules(a) + "- {path_regex: ^in/, " + part + ", age: " + b + "}\n"}, []string{".sops.yaml:4: the rule is never used: line 2 matches all of its files, and sops uses the first match; move this rule up, or remove it"}},
		"more of them":       {map[string]string{"l/.sops.yaml": "creation_rules:\n- age: " + a + "\n  encrypted_regex: (?i)^(password|stringdata)$\n"}, nil},
		"whole files beside": {map[string]string{".sops.yaml": "creation_rules:\n- age: " + a + "\n"}, nil},
		"another ending":     {map[string]string{"l/.sops.yml": rules(a)}, []string{".sops.yml:1: sops does not read this file: it reads .sops.yaml only; rename it"}},
		"both endings":       {map[string]string{"l/.sops.yml": rules(a), "l/.sops.yaml": rules(a)}, nil},
		"rules are broken":   {map[string]string{"l/.sops.yaml": rules("age1x"), "l/b.yaml": sealed("b", b)}, []string{`.sops.yaml:2: "age1x" is not a public age key`}},
		"broken at the top":  {map[string]string{".sops.yaml": "[", "l/b.yaml": sealed("b", b)}, []string{"../.sops.yaml:1: this is not YAML"}},
		"broken for no file": {map[string]string{"l/.sops.yaml": "creation_rules:\n- {path_regx: x, age: " + a + "}\n"}, []string{`.sops.yaml:2: sops ignores the field "path_regx"`}},
	} {
		t.Run(name, func(t *testing.T) {
			fsys := fstest.MapFS{"l/landscape.yaml": {Data: []byte("apiVersion: landscape.pergola.dev/v1alpha1\nkind: Landscape\nmetadata: {name: x}\nspec: {}\n")}}
			for name, text := range tt.files {
				fsys[name] = &fstest.MapFile{Data: []byte(text)}
			}
			l, _, err := LoadFS(t.Context(), fsys, "l", Options{})
			require.NoError(t, err)
			found := l.CheckSops()
			require.Len(t, found, len(tt.want))
			for i, want := range tt.want {
				assert.Contains(t, fmt.Sprintf("%s:%d: %s", found[i].File, found[i].Line, found[i].Message), want)
			}
		})
	}
}

// TestCovers: a rule after one for the same files has no effect.
func TestCovers(t *testing.T) {
	for _, tt := range []struct {
		one, other string
		want       bool
	}{
		{".*", "^seeds/.*\\.yaml$", true},
		{"^.*$", "x", true},
		{"\\.yaml$", "^seeds/.*\\.yaml$", true},
		{".*\\.ya?ml$", "secrets/[a-z0-9-]+\\.yaml$", true},
		{"^seeds/", "^seeds/(eu|us)-[0-9]+/", true},
		{"\\.yaml$", "\\.yaml$", true},
		{"seeds/.*", "seeds/eu", true},
		{"^seeds/.*\\.yaml$", "\\.yaml$", false},
		{"\\.yaml$", "^seeds/", false},
		{"^[^/]*\\.yaml$", ".*\\.yaml$", false},
		{"^seeds/eu", "^seeds/(eu|us)", false},
		{"a\\.yaml$", "b\\.yaml$", false},
		{"^in/", "^out/", false},
		{"dev", "(dev|prod)/secrets", false},
	} {
		assert.Equal(t, tt.want, isSupersetOf(regexp.MustCompile(tt.one), regexp.MustCompile(tt.other)), "%s before %s", tt.one, tt.other)
	}
	assert.True(t, isSupersetOf(nil, regexp.MustCompile("x")))
	assert.True(t, isSupersetOf(nil, nil))
	assert.False(t, isSupersetOf(regexp.MustCompile("x"), nil))
}
