// SPDX-License-Identifier: Apache-2.0

package landscapes

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestFilesThatAreNotRead: an object in an ignored file has a finding.
func TestFilesThatAreNotRead(t *testing.T) {
	const (
		notRead = "NotSupported holds an object, but only .yaml, .yml, .json and .cue files are read; rename the file, or move it out of the landscape"
		isCopy  = "NotSupported looks like a copy by its name, so its object is not read; "
		leftOut = "NotSupported declares nothing: CUE ignores files whose name begins with _ or ends in _test.cue or _tool.cue; rename the file if its object is wanted"
	)
	cue := "package p\n\nx: {\n\tapiVersion: \"v1\"\n\tkind: \"Namespace\"\n\tmetadata: name: \"x\"\n}\n"
	tests := map[string]struct{ file, text, want string }{
		"capital letters":          {"other.YAML", namespace("x"), "other.YAML:1:1 " + notRead},
		"two endings":              {"x.yml.txt", namespace("x"), "x.yml.txt:1:1 " + notRead},
		"no ending":                {"seeds/one", "# a seed\n---\n" + namespace("x"), "seeds/one:3:1 " + notRead},
		"JSON":                     {"x.JSON", `{"apiVersion": "v1", "kind": "Namespace"}`, "x.JSON:1:1 " + notRead},
		"JSON lines":               {"x.jsonl", `{"kind": "Namespace", "apiVersion": "v1"}` + "\n" + `{"kind": "Namespace", "apiVersion": "v1"}`, "x.jsonl:1:1 " + notRead},
		"CUE":                      {"x.CUE", cue, "x.CUE:4:1 " + notRead},
		"a blank at the end":       {"x.yaml ", namespace("x"), "x.yaml :1:1 " + notRead},
		"switched off":             {"x.yaml.disabled", namespace("x"), "x.yaml.disabled:1:1 " + notRead},
		"the object is not first":  {"x.tmpl", "a: 1\n---\n" + namespace("x"), "x.tmpl:3:1 " + notRead},
		"broken YAML":              {"x.yaml_", "apiVersion: v1\nkind: Seed\nmetadata:\n name: \"x\n", "x.yaml_:1:1 " + notRead},
		"a backup":                 {"x.yaml.bak", namespace("x"), "x.yaml.bak:1:1 " + isCopy + "rename the file to x.yaml if the object is wanted, else remove it"},
		"what a merge left":        {"x.yaml.orig", namespace("x"), "x.yaml.orig:1:1 " + isCopy + "rename the file to x.yaml if the object is wanted, else remove it"},
		"a copy beside it":         {"a.yaml.bak", namespace("a"), "a.yaml.bak:1:1 " + isCopy + "remove the file"},
		"a copy in a folder":       {"sub/one.yml.old", namespace("x"), "sub/one.yml.old:1:1 " + isCopy + "rename the file to one.yml if the object is wanted, else remove it"},
		"a copy of JSON":           {"x.json.save", `{"apiVersion": "v1", "kind": "Namespace"}`, "x.json.save:1:1 " + isCopy + "rename the file to x.json if the object is wanted, else remove it"},
		"a copy of CUE":            {"x.cue.bak", cue, "x.cue.bak:4:1 " + isCopy + "rename the file to x.cue if the object is wanted, else remove it"},
		"a copy of no declaration": {"x.bak", namespace("x"), "x.bak:1:1 " + isCopy + "remove the file"},
		"a CUE test":               {"x_test.cue", cue, "x_test.cue:4:1 " + leftOut},
		"a CUE tool":               {"x_tool.cue", cue, "x_tool.cue:4:1 " + leftOut},
		"a hidden CUE file":        {"_x.cue", cue, "_x.cue:4:1 " + leftOut},
		"a CUE tool with commands": {"run_tool.cue", "package p\n\nimport \"tool/exec\"\n\ncommand: x: exec.Run & {cmd: \"ls\"}\n", ""},
		"an editor's copy":         {"x.yaml~", namespace("x"), ""},
		"an editor's other copy":   {"#x.yaml#", namespace("x"), ""},
		"an editor's third copy":   {".x.yaml.swp", namespace("x"), ""},
		"a module of CUE":          {"cue.mod/module.cue", "module: \"x.example\"\nlanguage: version: \"v0.17.0\"\n", ""},
		"packages of that module":  {"sub/cue.mod/pkg/x/x.cue", cue, ""},
		"a private key":            {"keys/age.key", "# made today\nAGE-SECRET-KEY-1QQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQ\n", "keys/age.key:1:1 Forbidden holds a private age key, so everyone with the repository can decrypt its Secrets; remove the file, and encrypt them again for another key"},
		"a key of SSH":             {"garden/id_ed25519", sshKey, "garden/id_ed25519:1:1 Forbidden holds a private key, which everyone with the repository can use; remove the file, and renew the key: the history of the repository keeps it"},
		"a key in an overlay":      {"components/garden/x/tls.key", sshKey, "components/garden/x:0:0 Required the overlay has no file kustomization.yaml\ncomponents/garden/x/tls.key:1:1 Forbidden holds a private key, which everyone with the repository can use; remove the file, and renew the key: the history of the repository keeps it"},
		"a public key":             {"garden/id_ed25519.pub", "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAA me@example.org\n", ""},
		"a certificate":            {"garden/ca.crt", "-----BEGIN CERTIFICATE-----\nMIIBszCCAVqgAwIBAgIUX\n-----END CERTIFICATE-----\n", ""},
		"text":                     {"notes.txt", "apiVersion and kind: two words\n", ""},
		"Markdown":                 {"README.md", "```yaml\n" + namespace("x") + "```\n", ""},
		"a script":                 {"make.sh", "#!/bin/sh\nkubectl apply -f - <<EOF\n" + namespace("x") + "EOF\n", ""},
		"binary":                   {"x.png", "\x89PNG\x00apiVersion: kind:", ""},
		"other YAML":               {"values.tpl", "a: 1\n", ""},
		"a kubeconfig":             {"kubeconfig", "apiVersion: v1\nkind: Config\nclusters: []\n", ""},
		"a kubeconfig in JSON":     {"admin.kubeconfig", `{"kind": "Config", "apiVersion": "v1", "clusters": []}`, ""},
		"a kubeconfig with a user": {"admin.conf", "apiVersion: v1\nkind: Config\nusers: [{name: a, user: {token: abc}}]\n", "admin.conf:1:1 Forbidden is a kubeconfig with credentials, which everyone with the repository can use; remove the file, and renew the credentials: the history keeps them"},
		"a kubeconfig without one": {"admin.conf", "apiVersion: v1\nkind: Config\nusers: [{name: a, user: {exec: {command: x}}}]\n", ""},
		"a kubeconfig in YAML":     {"sub/k.yaml", "apiVersion: v1\nkind: Config\nclusters: []\n", "sub/k.yaml:2:7 Forbidden this is a kubeconfig, whose credentials do not belong in Git; remove the file, and renew the credentials: the history of the repository keeps them"},
		"an object after it":       {"x.txt", "apiVersion: v1\nkind: Config\n---\n" + namespace("x"), "x.txt:4:1 " + notRead},
		"another Config":           {"x.txt", "apiVersion: example.org/v1\nkind: Config\n", "x.txt:1:1 " + notRead},
		"large":                    {"x.log", strings.Repeat("apiVersion: kind:\n", 100_000), ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			landscape, violations := load(t, tree(map[string]string{"landscape.yaml": bareConfig, "a.yaml": namespace("a"), test.file: test.text}), ".", Options{})
			assert.Equal(t, test.want, strings.Join(violations, "\n"))
			assert.Equal(t, []string{"Namespace a"}, names(landscape))
		})
	}
	landscape, _ := load(t, tree(map[string]string{"landscape.yaml": bareConfig, "x.YAML": namespace("x")}), ".", Options{})
	assert.True(t, landscape.Incomplete, "nothing counts as removed")
}

const sshKey = "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAA\n-----END OPENSSH PRIVATE KEY-----\n"

// TestConfusingFileNames: confusing names have a finding.
func TestConfusingFileNames(t *testing.T) {
	const differs = " only in letter case, so a clone on a case-insensitive file system has only one of them; rename one"
	for name, test := range map[string]struct {
		files map[string]string
		want  string
	}{
		"other names":          {map[string]string{"eu-1.yaml": namespace("a"), "eu-2.yaml": namespace("b")}, ""},
		"other folders":        {map[string]string{"a/x.yaml": namespace("a"), "b/X.yaml": namespace("b")}, ""},
		"files":                {map[string]string{"seeds/EU-1.yaml": namespace("a"), "seeds/eu-1.yaml": namespace("b")}, "seeds/eu-1.yaml:1:1 Invalid differs from EU-1.yaml" + differs},
		"folders":              {map[string]string{"Seeds/1.yaml": namespace("a"), "seeds/2.yaml": namespace("b")}, "seeds:1:1 Invalid differs from Seeds" + differs},
		"another ending":       {map[string]string{"landscape.yml": namespace("a")}, "landscape.yml:1:1 Invalid is ignored, because the settings of the landscape are in landscape.yaml; move its content there, and remove the file"},
		"in a folder below":    {map[string]string{"sub/landscape.yml": namespace("a")}, ""},
		"another name of JSON": {map[string]string{"landscapes.json": "{\"apiVersion\": \"v1\", \"kind\": \"Namespace\", \"metadata\": {\"name\": \"a\"}}"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			test.files["landscape.yaml"] = bareConfig
			_, violations := load(t, tree(test.files), ".", Options{})
			assert.Equal(t, test.want, strings.Join(violations, "\n"))
		})
	}
}

// TestPEMTexts: readable private keys and unreadable PEM texts have a finding, which never has the
// value.
func TestPEMTexts(t *testing.T) {
	const (
		readable = "holds a private key, which everyone with the repository can use; move it to a Secret encrypted with SOPS, and renew the leaked key"
		joined   = "begins like PEM, but its lines were joined, so no program can read it; write the text after |, and keep its line breaks"
		secret   = "apiVersion: v1\nkind: Secret\nmetadata: {name: x, namespace: garden}\n"
		plain    = "the values are readable for everyone who can read the repository; encrypt the file with SOPS, and renew the values"
		config   = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x, namespace: garden}\n"
		key      = "  key: |\n    -----BEGIN EC PRIVATE KEY-----\n    MHcCAQEEIOgYxmGVb3vOdDVw\n    -----END EC PRIVATE KEY-----\n"
		lines    = "    -----BEGIN CERTIFICATE-----\n    MIIBszCCAVqgAwIBAgIUX\n    -----END CERTIFICATE-----\n"
	)
	for name, test := range map[string]struct{ text, want string }{
		"a key":                 {config + "data:\n" + key, "x.yaml:5:8 Invalid " + readable},
		"a key of age":          {config + "data: {a: AGE-SECRET-KEY-1QQQQQQQQQQ}\n", "x.yaml:1:1 Invalid " + readable},
		"all in one line":       {"{apiVersion: v1, kind: ConfigMap, metadata: {name: x, namespace: garden}, data: {a: AGE-SECRET-KEY-1QQQQQQQQQQ}}\n", "x.yaml:0:0 Invalid " + readable},
		"a key in base64":       {config + "binaryData: {a: LS0tLS1CRUdJTiBQUklWQVRFIEtFWS0tLS0tCmFhYWEK}\n", "x.yaml:1:1 Invalid " + readable},
		"a key in a Secret":     {secret + "stringData:\n" + key, "x.yaml:5:3 Forbidden " + plain},
		"a certificate":         {config + "data:\n  ca.crt: |\n" + lines, ""},
		"a certificate in JSON": {config + "data: {a: '{\"ca\": \"-----BEGIN CERTIFICATE-----\\nMIIBszCCAVqgAwIBAgIUX\\n\"}'}\n", ""},
		"words about keys":      {config + "data: {a: the first line is -----BEGIN CERTIFICATE----- and so on}\n", ""},
		"folded":                {config + "data:\n  ca.crt: >\n" + lines, "x.yaml:5:11 Invalid " + joined},
		"without a sign":        {config + "data:\n  ca.crt:\n" + lines, "x.yaml:6:5 Invalid " + joined},
		"folded in a Secret":    {secret + "stringData:\n  ca.crt: >\n" + lines, "x.yaml:5:3 Forbidden " + plain + "\nx.yaml:5:11 Invalid " + joined},
	} {
		t.Run(name, func(t *testing.T) {
			_, violations := load(t, tree(map[string]string{"landscape.yaml": bareConfig, "x.yaml": test.text}), ".", Options{})
			assert.Equal(t, test.want, strings.Join(violations, "\n"))
		})
	}
}
