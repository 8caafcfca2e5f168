// SPDX-License-Identifier: Apache-2.0

package report

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/pergola-dev/pergola/schemas"
)

const seedYAML = `apiVersion: core.gardener.cloud/v1beta1
kind: Seed
metadata: {name: local}
spec:
  provider: {type: local, regoin: here}
  backup:
    provider: local
    credentialsRef: {apiVersion: v1, kind: Secret, namespace: garden, name: backup}
  password: hidden
  dns:
    provider:
      type: local # the password is hidden
`

const shootYAML = `apiVersion: core.gardener.cloud/v1beta1
kind: Shoot
metadata: {name: web, namespace: garden-web}
spec:
  credentialsBindingName: web
  provider:
    infrastructureConfig: {apiKey: hidden}
`

// excerptAt returns the excerpt that a report shows for a finding in a line, counted from 1.
func excerptAt(t *testing.T, file, content string, line int) string {
	t.Helper()
	v := schemas.Violation{Severity: schemas.SeverityError, File: file, Line: line, Column: 1, Message: "no"}
	text := writeReport(t, []schemas.Violation{v}, Options{ReadSource: func(string) ([]byte, error) { return []byte(content), nil }})
	_, excerpt, _ := strings.Cut(text, " | ")
	excerpt, _, _ = strings.Cut(excerpt, "\n")
	return excerpt
}

// TestSecretReferencesAreShown checks that names of Secrets are shown.
func TestSecretReferencesAreShown(t *testing.T) {
	for name, test := range map[string]struct {
		content string
		line    int
		want    string
	}{
		"beside a reference":    {seedYAML, 5, "  provider: {type: local, regoin: here}"},
		"a reference":           {seedYAML, 8, "    credentialsRef: {apiVersion: v1, kind: Secret, namespace: garden, name: backup}"},
		"name of a binding":     {shootYAML, 5, "  credentialsBindingName: web"},
		"behind a Secret":       {"kind: Secret\nstringData: {a: hidden}\n---\n" + seedYAML, 8, "  provider: {type: local, regoin: here}"},
		"before a Secret":       {shootYAML + "---\nkind: Secret\nstringData: {a: hidden}\n", 5, "  credentialsBindingName: web"},
		"a field in it":         {strings.Replace(seedYAML, "name: backup", "nam: backup", 1), 8, "    credentialsRef: {apiVersion: v1, kind: Secret, namespace: garden, nam: backup}"},
		"below a telling name":  {strings.Replace(seedYAML, "password: hidden", "password:\n    hidden", 1), 10, ""},
		"lines of a text":       {strings.Replace(shootYAML, "{apiKey: hidden}", "\n      script: |\n        x\n        token=hidden\n        y", 1), 11, ""},
		"in JSON":               {`{"apiVersion": "core.gardener.cloud/v1beta1", "kind": "Shoot",` + "\n" + `"spec": {"credentialsBindingName": "web"}}`, 2, `"spec": {"credentialsBindingName": "web"}}`},
		"an item of a List":     {"apiVersion: v1\nkind: List\nitems:\n- apiVersion: core.gardener.cloud/v1beta1\n  kind: Shoot\n  spec:\n    credentialsBindingName: web\n", 7, "    credentialsBindingName: web"},
		"an unknown field":      {seedYAML, 9, ""},
		"a comment":             {seedYAML, 12, ""},
		"an annotation":         {strings.Replace(shootYAML, "name: web,", "name: web, annotations: {example.org/token: hidden},", 1), 3, ""},
		"config of a provider":  {shootYAML, 7, ""},
		"a broken document":     {seedYAML + "  a: [\n", 5, ""},
		"beside a broken Shoot": {shootYAML + "---\na: [\n---\n" + seedYAML, 15, "  provider: {type: local, regoin: here}"},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, test.want, excerptAt(t, "f.yaml", test.content, test.line)) })
	}
}

// TestSecretObjectsAreHidden checks that objects with secret values are hidden, in any notation of
// the kind.
func TestSecretObjectsAreHidden(t *testing.T) {
	for _, kind := range []string{"Secret", "InternalSecret", "ShootState"} {
		escaped := `"\x` + map[string]string{"Secret": "53ecret", "InternalSecret": "49nternalSecret", "ShootState": "53hootState"}[kind] + `"`
		half := len(kind) / 2
		for name, test := range map[string]struct{ file, content string }{
			"plain":             {"f.yaml", "apiVersion: v1\nkind: " + kind + "\nmetadata: {name: hidden}\nx: hidden\n"},
			"escaped":           {"f.yaml", "apiVersion: v1\nkind: " + escaped + "\nmetadata: {name: hidden}\nx: hidden\n"},
			"escaped name":      {"f.yaml", "apiVersion: v1\n\"k\\x69nd\": " + kind + "\ndata:\n  x: hidden\n"},
			"an alias":          {"f.yaml", "x-kind: &k " + kind + "\nkind: *k\nstringData:\n  x: hidden\n"},
			"two kinds":         {"f.yaml", "kind: Seed\nkind: " + escaped + "\ndata:\n  x: hidden\n"},
			"in JSON":           {"f.json", "{\"kind\": \"\\u00" + map[string]string{"Secret": "53", "InternalSecret": "49", "ShootState": "53"}[kind] + kind[1:] + "\",\n\"data\": {\n\n\"x\": \"hidden\"}}\n"},
			"in a List":         {"f.yaml", "kind: List\nitems:\n- kind: " + escaped + "\n  x: hidden\n"},
			"a list of them":    {"f.yaml", "apiVersion: v1\nkind: " + kind + "List\nitems:\n- x: hidden\n"},
			"broken":            {"f.yaml", "apiVersion: v1\nkind: " + kind + "\na: [\nx: hidden\n"},
			"broken, escaped":   {"f.yaml", "apiVersion: v1\nkind: " + escaped + "\na: [\nx: hidden\n"},
			"broken at a mark":  {"f.yaml", "kind: " + kind + "\ndata: {a: b, a\n---\nx: hidden\n"},
			"broken, values":    {"f.yaml", "knd: x\na: [\nstringData:\n  x: hidden\n"},
			"in CUE":            {"f.cue", "a: {\nkind: \"" + kind + "\"\ndata:\nx: \"hidden\"\n"},
			"CUE, put together": {"f.cue", "a: {\nkind: \"" + kind[:half] + "\" + \"" + kind[half:] + "\"\n\nx: \"hidden\"\n"},
			"CUE, escaped":      {"f.cue", "a: {\nkind: \"\\u0053" + kind[1:] + "\"\n\nx: \"hidden\"\n"},
			"CUE, a name":       {"f.cue", "a: {\nkind: #K\n\nx: \"hidden\"\n"},
			"CUE, values":       {"f.cue", "a: b: c: {\nstringData: {\n\nx: \"hidden\"\n"},
			"CUE, odd name":     {"f.cue", "a: {\n\"d\\u0061ta\": {\n\nx: \"hidden\"\n"},
			"CUE, computed":     {"f.cue", "a: {\n(\"da\" + \"ta\"): {\n\nx: \"hidden\"\n"},
		} {
			t.Run(kind+" "+name, func(t *testing.T) { assert.Empty(t, excerptAt(t, test.file, test.content, 4)) })
		}
	}
	v := schemas.Violation{Severity: schemas.SeverityError, File: "f.cue", Line: 1, Column: 1, Kind: "Secret", Message: "no"}
	assert.NotContains(t, writeReport(t, []schemas.Violation{v}, Options{ReadSource: func(string) ([]byte, error) { return []byte("_a: \"hidden\"\n"), nil }}), "hidden")
}

func TestCUEExcerpt(t *testing.T) {
	content := "package local\n\n\"\\(name)\": {\n\tkind: \"Seed\" // of a region\n\tregoin: \"x\"\n}\n"
	assert.Equal(t, "\tregoin: \"x\"", excerptAt(t, "f.cue", content, 5))
}
