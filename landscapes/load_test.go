// SPDX-License-Identifier: Apache-2.0

package landscapes

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pergola-dev/pergola/schemas"
)

const bareConfig = "apiVersion: landscape.pergola.dev/v1alpha1\nkind: Landscape\nmetadata: {name: test}\nspec: {}\n"

// tree makes a file system from names and contents.
func tree(files map[string]string) fstest.MapFS {
	result := fstest.MapFS{}
	for name, text := range files {
		result[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return result
}

func load(t *testing.T, fsys fs.FS, dir string, opts Options) (*Landscape, []string) {
	t.Helper()
	landscape, violations, err := LoadFS(t.Context(), fsys, dir, opts)
	require.NoError(t, err)
	return landscape, summaries(violations)
}

// summaries formats violations as place, type and message.
func summaries(violations []schemas.Violation) []string {
	var lines []string
	for _, v := range violations {
		lines = append(lines, fmt.Sprintf("%s:%d:%d %s %s", v.File, v.Line, v.Column, v.Type, v.Message))
	}
	return lines
}

func namespace(name string) string {
	return "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: " + name + "\n"
}

func names(l *Landscape) []string {
	var result []string
	for _, d := range l.Declarations {
		result = append(result, identityOf(&d).String())
	}
	return result
}

func TestFindsDeclarationsInAnyLayout(t *testing.T) {
	landscape, violations := load(t, tree(map[string]string{
		"landscape.yaml":       bareConfig,
		"README.md":            "# nothing",
		"notes.txt":            "nothing",
		".hidden/x.yaml":       namespace("hidden"),
		"a/b/c.yml":            "# a comment\n---\n" + namespace("one") + "---\n# only a comment\n---\n" + namespace("two") + "...\n",
		"d.json":               `{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "three"}}`,
		"list.yaml":            "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: ConfigMap\n  metadata: {name: four, namespace: x}\n",
		"e.yaml":               "--- {apiVersion: v1, kind: Namespace, metadata: {name: five}}\n",
		"other/landscape.yaml": bareConfig,
		"other/x.yaml":         namespace("of-another-landscape"),
		"components/seed/etcd-druid/kustomization.yaml": "resources: []\n",
		"components/seed/etcd-druid/patch.yaml":         "kind: Deployment\n",
	}), ".", Options{})
	assert.Equal(t, []string{"other/landscape.yaml:1:1 Forbidden the folder is a separate landscape, not part of this one; to include it, list it in spec.layers, or remove its landscape.yaml"}, violations)
	assert.Equal(t, []string{"Namespace one", "Namespace two", "Namespace three", "Namespace five", "ConfigMap x/four"}, names(landscape))
	assert.Equal(t, []Overlay{{Owner: "seed", Component: "etcd-druid", Path: "components/seed/etcd-druid"}}, landscape.Overlays)
	two := landscape.Declarations[1]
	assert.Equal(t, "a/b/c.yml", two.File)
	assert.Equal(t, schemas.Position{File: "a/b/c.yml", Line: 13, Column: 9}, two.Position("metadata.name"))
	assert.Equal(t, schemas.Position{File: "a/b/c.yml", Line: 13, Column: 3}, two.KeyPosition("metadata.name"))
	assert.Equal(t, schemas.Position{File: "a/b/c.yml", Line: 13, Column: 3}, two.Position("metadata.labels[a.b/c]"), "the closest parent")
	assert.Equal(t, schemas.Position{File: "e.yaml", Line: 1, Column: 56}, landscape.Declarations[3].Position("metadata.name"))
	assert.Equal(t, schemas.Position{File: "list.yaml", Line: 6, Column: 20}, landscape.Declarations[4].Position("metadata.name"))
}

func TestBadFiles(t *testing.T) {
	deep := strings.Repeat("[", 80) + strings.Repeat("]", 80)
	bomb := "a: &a [x,x,x,x,x,x,x,x,x,x]\n"
	for i := 'b'; i <= 'i'; i++ {
		bomb += fmt.Sprintf("%c: &%c [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*%c,", i-1), 10), ","))
	}
	tests := map[string]struct {
		name, text string
		want       []string
	}{
		"tab":             {"x.yaml", "apiVersion: v1\nkind: Namespace\nmetadata:\n\tname: a\n", []string{"x.yaml:4:1 Invalid a tab indents the line; YAML allows only spaces"}},
		"binary":          {"x.yaml", "abc\x00", []string{"x.yaml:1:4 Invalid the file is binary: it holds a zero byte"}},
		"not UTF-8":       {"x.yaml", "a: b\nc: \xff\n", []string{"x.yaml:2:4 Invalid the file is not UTF-8: byte 0xff"}},
		"UTF-16":          {"x.yaml", "\xff\xfea\x00", []string{"x.yaml:1:1 Invalid the file is UTF-16; save it as UTF-8"}},
		"duplicate key":   {"x.yaml", namespace("a") + "kind: Namespace\n", []string{`x.yaml:5:1 Invalid the field "kind" is written twice: first in line 2`}},
		"deep":            {"x.yaml", "a: " + deep, []string{"x.yaml:1:68 Invalid values are nested more than 64 deep, or an anchor holds itself"}},
		"self anchor":     {"x.yaml", "a: &a\n  b: *a\n", []string{"x.yaml:1:4 Invalid values are nested more than 64 deep, or an anchor holds itself"}},
		"billion laughs":  {"x.yaml", bomb, []string{"x.yaml:1:18 Invalid the document has more than 200000 values with its anchors expanded"}},
		"pointer of LFS":  {"x.yaml", "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\nsize 12345\n", []string{"x.yaml:1:1 Invalid is a pointer of Git LFS, which is not supported: commit the file itself (git lfs untrack, git add --renormalize)"}},
		"overlay astray":  {"component/garden/vpa/kustomization.yaml", "patches: []\n", []string{"component/garden/vpa/kustomization.yaml:1:1 Required apiVersion and kind must be set, as for every object of an API; an overlay belongs to the folder components/OWNER/COMPONENT of the landscape itself, and not to a layer"}},
		"no object":       {"x.yaml", "- a\n", []string{"x.yaml:1:1 Invalid must be an object with apiVersion, kind and metadata"}},
		"no kind":         {"x.yaml", "apiVersion: v1\nmetadata: {name: a}\n", []string{"x.yaml:1:1 Required must be set, as for every object of an API"}},
		"neither":         {"x.yaml", "metadata: {name: a}\n", []string{"x.yaml:1:1 Required apiVersion and kind must be set, as for every object of an API; remove the document if it is not an object"}},
		"both empty":      {"x.yaml", "apiVersion: \"\"\nkind:\n", []string{"x.yaml:1:1 Required apiVersion and kind must be set, as for every object of an API; remove the document if it is not an object"}},
		"both no text":    {"x.json", `{"apiVersion": 1, "kind": {}}`, []string{"x.json:1:1 Required apiVersion and kind must be set, as for every object of an API; remove the document if it is not an object"}},
		"item of a List":  {"x.yaml", "apiVersion: v1\nkind: List\nitems:\n- a: 1\n", []string{"x.yaml:4:3 Required apiVersion and kind must be set, as for every object of an API; remove the document if it is not an object"}},
		"values":          {"x.yaml", namespace("a") + "---\nimage: x\ntag: y\n", []string{"x.yaml:6:1 Required apiVersion and kind must be set, as for every object of an API; remove the document if it is not an object"}},
		"no apiVersion":   {"x.yaml", "kind: Namespace\nmetadata: {name: a}\n", []string{"x.yaml:1:1 Required must be set, as for every object of an API"}},
		"number as name":  {"x.yaml", "apiVersion: v1\nkind: Namespace\nmetadata: {name: 5}\n", []string{"x.yaml:3:18 TypeInvalid must be text; put the value in quotes"}},
		"wrong version":   {"x.yaml", "apiVersion: core.gardener.cloud/v1alpha1\nkind: Seed\nmetadata: {name: a}\n", []string{`x.yaml:1:13 NotSupported "core.gardener.cloud/v1alpha1" has no kind Seed; it is served by core.gardener.cloud/v1beta1`}},
		"unknown tag":     {"x.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {b: !secret c}\n", []string{"x.yaml:4:11 Invalid the value has a tag, which API objects do not know; text that begins with ! needs quotes"}},
		"infinite number": {"x.yaml", "a: .inf\n", []string{"x.yaml:1:4 Invalid the value is not a finite number"}},
		"broken yaml":     {"x.yaml", namespace("good") + "---\na: b: c\n---\n" + namespace("good2"), []string{"x.yaml:6:5 Invalid this is not YAML: the value holds a colon and a space, which would begin another field; put the value in quotes, or begin a new line"}},
		"cue syntax":      {"x.cue", "a: {\n", []string{"x.cue:1:6 Invalid the file ends before a bracket is closed: } is missing"}},
		"cue conflict":    {"x.cue", "ns: {apiVersion: \"v1\", kind: \"Namespace\", metadata: name: \"a\"}\nns: metadata: name: \"b\"\n", []string{`x.cue:2:21 Invalid ns.metadata.name: two places give it different values, or one gives a type that the other does not allow`}},
		"cue open":        {"x.cue", "ns: {apiVersion: \"v1\", kind: \"Namespace\", metadata: name: string}\n", []string{"x.cue:1:59 Invalid ns.metadata.name: it has no concrete value"}},
		"cue import":      {"x.cue", "import \"example.com/x\"\na: x.y\n", []string{`x.cue:1:8 Forbidden "example.com/x" must not be imported: declarations use only the CUE standard library`}},
		"cue tool":        {"x.cue", "import \"tool/exec\"\na: exec.Run\n", []string{`x.cue:1:8 Forbidden "tool/exec" must not be imported: declarations use only the CUE standard library`}},
		"cue embed":       {"x.cue", "@extern(embed)\npackage p\na: _ @embed(file=landscape.yaml)\n", []string{"x.cue:1:1 Forbidden @extern is not allowed: declarations do not read other files", "x.cue:3:6 Forbidden @embed is not allowed: declarations do not read other files; write the content here"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, violations := load(t, tree(map[string]string{"landscape.yaml": bareConfig, test.name: test.text}), ".", Options{})
			assert.Equal(t, test.want, violations)
		})
	}
}

// TestForeignKinds: a kind of another API is not a Gardener kind just because the names are equal.
// A kind of a misspelt Gardener group is.
func TestForeignKinds(t *testing.T) {
	const toOverlay = ": add an object of another API to a component, by an overlay components/OWNER/COMPONENT/kustomization.yaml that lists its file under resources"
	foreign := func(apiVersion, kind, own string) string {
		return fmt.Sprintf("x.yaml:1:13 NotSupported %q is not an API of a landscape, where kind %s belongs to %s%s", apiVersion, kind, own, toOverlay)
	}
	const component = "a landscape declares no %s: add it to a component, by an overlay components/OWNER/COMPONENT/kustomization.yaml that lists its file under resources"
	for _, test := range []struct{ apiVersion, kind, want string }{
		{"example.org/v1", "Shoot", foreign("example.org/v1", "Shoot", "core.gardener.cloud/v1beta1")},
		{"farm.example.org/v1alpha1", "Seed", foreign("farm.example.org/v1alpha1", "Seed", "core.gardener.cloud/v1beta1")},
		{"harvesterhci.io/v1beta1", "Extension", foreign("harvesterhci.io/v1beta1", "Extension", "extensions.gardener.cloud/v1alpha1 or operator.gardener.cloud/v1alpha1")},
		{"management.cattle.io/v3", "Project", foreign("management.cattle.io/v3", "Project", "core.gardener.cloud/v1beta1")},
		{"cluster.x-k8s.io/v1beta1", "Secret", foreign("cluster.x-k8s.io/v1beta1", "Secret", "v1")},
		{"argoproj.io/v1alpha1", "AppProject", "x.yaml:2:7 NotSupported " + fmt.Sprintf(component, "AppProject")},
		{"example.org/v1", "Shoots", "x.yaml:2:7 NotSupported " + fmt.Sprintf(component, "Shoots")},
		{"cluster.x-k8s.io/v1beta1", "Cluster", foreign("cluster.x-k8s.io/v1beta1", "Cluster", "extensions.gardener.cloud/v1alpha1")},
		{"core.gardner.cloud/v1beta1", "Shoot", `x.yaml:1:13 NotSupported "core.gardner.cloud/v1beta1" has no kind Shoot; it is served by core.gardener.cloud/v1beta1`},
		{"gardener.cloud/v1beta1", "Shoot", `x.yaml:1:13 NotSupported "gardener.cloud/v1beta1" has no kind Shoot; it is served by core.gardener.cloud/v1beta1`},
		{"events.k8s.io/v1", "Namespace", `x.yaml:1:13 NotSupported "events.k8s.io/v1" has no kind Namespace; it is served by v1`},
		{"core/v1", "ConfigMap", `x.yaml:1:13 NotSupported "core/v1" has no kind ConfigMap; it is served by v1`},
	} {
		t.Run(test.apiVersion+" "+test.kind, func(t *testing.T) {
			_, violations := load(t, tree(map[string]string{"landscape.yaml": bareConfig,
				"x.yaml": "apiVersion: " + test.apiVersion + "\nkind: " + test.kind + "\nmetadata: {name: a}\n"}), ".", Options{})
			assert.Equal(t, []string{test.want}, violations)
		})
	}
}

// TestUnknownKind: the message suggests a kind or names the right folder, and lists no kinds of
// other APIs.
func TestUnknownKind(t *testing.T) {
	const toOverlay = ": add it to a component, by an overlay components/OWNER/COMPONENT/kustomization.yaml that lists its file under resources"
	for _, test := range []struct{ apiVersion, kind, want string }{
		{"landscape.pergola.dev/v1alpha1", "Operation", "an Operation belongs to operations/ID.yaml of the landscape"},
		{"core.gardener.cloud/v1beta1", "Shot", `unknown kind "Shot"; did you mean Shoot?`},
		{"core.gardener.cloud/v1beta1", "Sede", `unknown kind "Sede"; did you mean Seed?`},
		{"core.gardner.cloud/v1beta1", "CloudProfil", `unknown kind "CloudProfil"; did you mean CloudProfile?`},
		{"v1", "Secrets", `unknown kind "Secrets"; did you mean Secret?`},
		{"core.gardener.cloud/v1beta1", "Grden", `unknown kind "Grden"; did you mean Garden?`},
		{"operator.gardener.cloud/v1alpha1", "Deployment", `unknown kind "Deployment"; operator.gardener.cloud/v1alpha1 has Extension, Garden`},
		{"security.gardener.cloud/v1alpha1", "Role", `unknown kind "Role"; security.gardener.cloud/v1alpha1 has CredentialsBinding, WorkloadIdentity`},
		{"apps/v1", "Deployment", "a landscape declares no Deployment" + toOverlay},
		{"v1", "Service", "a landscape declares no Service" + toOverlay},
		{"v1", "Pod", "a landscape declares no Pod" + toOverlay},
		{"batch/v1", "Job", "a landscape declares no Job" + toOverlay},
		{"rbac.authorization.k8s.io/v1", "ClusterRole", "a landscape declares no ClusterRole" + toOverlay},
		{"cert-manager.io/v1", "Issuer", "a landscape declares no Issuer" + toOverlay},
		{"kustomize.toolkit.fluxcd.io/v1", "Kustomization", "a landscape declares no Kustomization" + toOverlay},
		{"kustomize.config.k8s.io/v1beta1", "Kustomization", "an overlay belongs to components/OWNER/COMPONENT/kustomization.yaml"},
		{"kustomize.config.k8s.io/v1alpha1", "Component", "an overlay belongs to components/OWNER/COMPONENT/kustomization.yaml"},
	} {
		t.Run(test.apiVersion+" "+test.kind, func(t *testing.T) {
			_, violations := load(t, tree(map[string]string{"landscape.yaml": bareConfig,
				"x.yaml": "kind: " + test.kind + "\napiVersion: " + test.apiVersion + "\nmetadata: {name: a}\n"}), ".", Options{})
			assert.Equal(t, []string{"x.yaml:1:7 NotSupported " + test.want}, violations)
		})
	}
}

func TestDuplicatesNameBothPlaces(t *testing.T) {
	landscape, violations := load(t, tree(map[string]string{
		"landscape.yaml": bareConfig, "a.yaml": namespace("x"), "b/c.yaml": namespace("w") + "---\n" + namespace("x"),
	}), ".", Options{})
	assert.Equal(t, []string{"b/c.yaml:9:3 Duplicate the object is already declared in a.yaml:1:1; remove one of them, or choose another name"}, violations)
	assert.Equal(t, []string{"Namespace x", "Namespace w"}, names(landscape))
}

func TestAllFindingsInOneRun(t *testing.T) {
	_, violations := load(t, tree(map[string]string{
		"landscape.yaml": bareConfig, "a.yaml": "a: b: c", "b.yaml": "[]", "c.cue": "x: {", "d.yaml": namespace("ok"),
	}), ".", Options{})
	assert.Len(t, violations, 3)
}

func TestLimits(t *testing.T) {
	files := map[string]string{"landscape.yaml": bareConfig, "a.yaml": namespace("a"), "b.yaml": namespace("b"), "c.yaml": namespace("c"), "big.yaml": "# " + strings.Repeat("x", 500)}
	landscape, violations := load(t, tree(files), ".", Options{Limits: Limits{FileSize: 200}})
	assert.Equal(t, []string{"big.yaml:0:0 TooLong is larger than 200 bytes: it has 502 bytes; make several files of it"}, violations)
	assert.Len(t, landscape.Declarations, 3)
	_, violations = load(t, tree(files), ".", Options{Limits: Limits{Files: 3}})
	assert.Equal(t, []string{"big.yaml:0:0 TooMany the landscape has more than 3 files; this one and those after it are not read"}, violations[:1])
	delete(files, "big.yaml")
	_, violations = load(t, tree(files), ".", Options{Limits: Limits{Files: 2}})
	assert.Equal(t, []string{"b.yaml:0:0 TooMany the landscape has more than 2 files; this one and those after it are not read"}, violations)
}

func TestNoLandscape(t *testing.T) {
	_, _, err := LoadFS(t.Context(), tree(map[string]string{"x.yaml": "a: b"}), ".", Options{})
	require.ErrorIs(t, err, fs.ErrNotExist)
	assert.EqualError(t, err, ". is not a landscape: it has no file landscape.yaml")
	_, _, err = Load(t.Context(), t.TempDir()+"/nowhere", Options{})
	require.ErrorIs(t, err, fs.ErrNotExist)
	assert.ErrorContains(t, err, "/nowhere is not a landscape: there is no such folder")
	dir := t.TempDir()
	_, _, err = Load(t.Context(), dir, Options{})
	assert.EqualError(t, err, dir+" is not a landscape: it has no file landscape.yaml", "the folder as it was named")
}

// TestConfigIsALink: a link that leaves the landscape is refused, and one inside is followed.
func TestConfigIsALink(t *testing.T) {
	const config = "apiVersion: landscape.pergola.dev/v1alpha1\nkind: Landscape\nmetadata: {name: test}\n"
	for target, want := range map[string][]string{
		"/dev/zero":  {`landscape.yaml:0:0 Forbidden is a symbolic link to "/dev/zero", which leaves the landscape; copy the file, or make its folder a layer`},
		"../x.yaml":  {`landscape.yaml:0:0 Forbidden is a symbolic link to "../x.yaml", which leaves the landscape; copy the file, or make its folder a layer`},
		"nowhere":    {`landscape.yaml:0:0 Invalid is a symbolic link to "nowhere", which does not exist`},
		".real.yaml": nil,
	} {
		t.Run(target, func(t *testing.T) {
			dir := t.TempDir()
			require.NoError(t, os.WriteFile(filepath.Join(dir, ".real.yaml"), []byte(config), 0o644))
			require.NoError(t, os.Symlink(target, filepath.Join(dir, "landscape.yaml")))
			_, violations, err := Load(t.Context(), dir, Options{})
			require.NoError(t, err)
			if want == nil {
				assert.Empty(t, violations)
			} else {
				assert.Equal(t, want, summaries(violations))
			}
		})
	}
}

func TestTwoGardens(t *testing.T) {
	const garden = "apiVersion: operator.gardener.cloud/v1alpha1\nkind: Garden\nmetadata: {name: NAME}\n"
	l, _ := load(t, tree(map[string]string{
		"landscape.yaml": "apiVersion: landscape.pergola.dev/v1alpha1\nkind: Landscape\nmetadata: {name: test}\n",
		"a.yaml":         strings.Replace(garden, "NAME", "one", 1), "b.yaml": strings.Replace(garden, "NAME", "two", 1),
	}), ".", Options{})
	found, err := l.Validate(t.Context(), schemas.Options{})
	require.NoError(t, err)
	var second []string
	for _, v := range found {
		if v.Rule == "garden/only-one" {
			second = append(second, v.File+" "+v.Message)
		}
	}
	assert.Equal(t, []string{`b.yaml the Garden "one" already exists, and only one is possible`}, second)
}

func TestKubectlBooleans(t *testing.T) {
	found, violations := parse(t, "-", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\nx: [yes, off, 'yes', 0644, 1e3, 2026-01-01, ~, 1_000, 220000+0100]\n<<: {y: 1}\n", Options{})
	require.Empty(t, violations)
	assert.Equal(t, []any{true, false, "yes", int64(420), float64(1000), "2026-01-01", nil, int64(1000), "220000+0100"}, found[0].Object().Object["x"])
	assert.Equal(t, int64(1), found[0].Object().Object["y"])
}

// TestSpecialFoldersHoldNoDeclarations: overlays, operations, recorded renders and facts at the top
// of a landscape are not declarations.
func TestSpecialFoldersHoldNoDeclarations(t *testing.T) {
	rendered := "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: rendered, namespace: garden}\n"
	landscape, violations := load(t, tree(map[string]string{
		"landscape.yaml":      "apiVersion: landscape.pergola.dev/v1alpha1\nkind: Landscape\nmetadata: {name: test}\nspec: {facts: recorded/facts.yaml}\n",
		"recorded/facts.yaml": "garden local: {}\n",
		"ns.yaml":             namespace("one"),
		"golden/runtime/garden/vpa/deployment-garden-rendered.yaml": rendered,
		"golden/runtime/garden/vpa/bundle.yaml":                     "name: vpa\n",
		"components/garden/vpa/kustomization.yaml":                  "patches: []\n",
		"projects/golden/ns.yaml":                                   namespace("two"),
	}), ".", Options{})
	assert.Empty(t, violations)
	assert.Equal(t, []string{"Namespace one", "Namespace two"}, names(landscape))
}

// parse calls Parse and requires success; its error is only about contexts and evaluators.
func parse(t *testing.T, name, text string, opts Options) ([]Declaration, []schemas.Violation) {
	t.Helper()
	found, violations, err := Parse(t.Context(), name, []byte(text), opts)
	require.NoError(t, err)
	return found, violations
}

// TestPlacesInTexts: a finding inside a block scalar has the line of the fault.
func TestPlacesInTexts(t *testing.T) {
	const text = `apiVersion: v1
kind: ConfigMap
metadata: {name: a, namespace: garden}
data:
  # The text begins two lines below.
  policy: |
    apiVersion: audit.k8s.io/v1

    kind: Policy
    rules:
    - level: None
      users: [a]
  quoted: "a: b\nc: d"
  broken: |
    a: [
`
	files := readMemoryFS(t, "local")
	files["a.yaml"] = &fstest.MapFile{Data: []byte(text)}
	l, violations, err := LoadFS(t.Context(), files, ".", Options{})
	require.NoError(t, err)
	require.Empty(t, violations)
	i := slices.IndexFunc(l.Declarations, func(d Declaration) bool { return d.File == "a.yaml" })
	require.GreaterOrEqual(t, i, 0)
	d := &l.Declarations[i]
	for path, want := range map[string][2]int{
		"data[policy]": {6, 11}, "data[policy].rules": {11, 5}, "data[policy].rules[0].level": {11, 14}, "data[policy].rules[0].users[0]": {12, 15},
		"data[policy].rules[0].other": {11, 7}, "data[policy].other": {6, 11}, "data[quoted].c": {13, 11}, "data[broken].a": {14, 11},
	} {
		p := d.Position(path)
		assert.Equal(t, want, [2]int{p.Line, p.Column}, path)
	}
	assert.Equal(t, 12, d.KeyPosition("data[policy].rules[0].users").Line)
}

// TestServerMetadata: output of kubectl get can be committed; metadata of the server are ignored.
func TestServerMetadata(t *testing.T) {
	files := fstest.MapFS{
		"landscape.yaml": {Data: []byte("apiVersion: landscape.pergola.dev/v1alpha1\nkind: Landscape\nmetadata: {name: test}\n")},
		"shoot.yaml": {Data: []byte(`apiVersion: v1
kind: List
items:
- apiVersion: core.gardener.cloud/v1beta1
  kind: Shoot
  metadata:
    name: a
    namespace: garden-a
    uid: 6f62394d-0000-0000-0000-000000000000
    resourceVersion: "1"
    generation: 2
    creationTimestamp: "2026-01-01T00:00:00Z"
    deletionTimestamp: "2026-01-01T00:00:00Z"
    deletionGracePeriodSeconds: 0
    managedFields: []
    labels: {uid: mine}
`)},
	}
	l, violations, err := LoadFS(t.Context(), files, ".", Options{})
	require.NoError(t, err)
	require.Empty(t, violations)
	require.Len(t, l.Declarations, 1)
	object := l.Declarations[0].Object()
	assert.Len(t, object.Object["metadata"], 3)
	assert.Equal(t, map[string]string{"uid": "mine"}, object.GetLabels())
}
