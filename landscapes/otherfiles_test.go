package landscapes

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestFilesThatAreNotRead: an object in a file that nobody reads is missed by nobody.
func TestFilesThatAreNotRead(t *testing.T) {
	const (
		notRead = "NotSupported holds an object (apiVersion and kind), but files of this name are not read; declarations end in .yaml, .yml, .json or .cue: rename the file, or move it out of the landscape"
		isCopy  = "NotSupported is a copy by its name, so that the object in it is not read; "
		leftOut = "NotSupported declares nothing: CUE leaves out files whose name begins with _ or ends in _test.cue or _tool.cue; rename the file if its object is wanted"
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
		"a private key":            {"keys/age.key", "# made today\nAGE-SECRET-KEY-1QQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQ\n", "keys/age.key:1:1 Forbidden holds a private age key: whoever has the repository can decrypt its Secrets; remove the file, and encrypt them anew for another key"},
		"text":                     {"notes.txt", "apiVersion and kind: two words\n", ""},
		"Markdown":                 {"README.md", "```yaml\n" + namespace("x") + "```\n", ""},
		"a script":                 {"make.sh", "#!/bin/sh\nkubectl apply -f - <<EOF\n" + namespace("x") + "EOF\n", ""},
		"binary":                   {"x.png", "\x89PNG\x00apiVersion: kind:", ""},
		"other YAML":               {"values.tpl", "a: 1\n", ""},
		"a kubeconfig":             {"kubeconfig", "apiVersion: v1\nkind: Config\nclusters: []\n", ""},
		"a kubeconfig in JSON":     {"admin.kubeconfig", `{"kind": "Config", "apiVersion": "v1", "clusters": []}`, ""},
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
