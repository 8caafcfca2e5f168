// SPDX-License-Identifier: Apache-2.0

package landscapes

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pergola-dev/pergola/schemas"
)

func withSpec(spec string) string {
	return "apiVersion: landscape.pergola.dev/v1alpha1\nkind: Landscape\nmetadata: {name: test}\nspec:\n" + spec
}

// TestConfig: a value without an effect, or with an unexpected one, is a finding at its place.
func TestConfig(t *testing.T) {
	tests := map[string]struct {
		spec string
		want []string // with severity, as validate prints them
	}{
		"crd":                  {"  gardenAPI: crd\n", nil},
		"aggregated":           {"  gardenAPI: aggregated\n", nil},
		"thresholds":           {"  conditionThresholds:\n  - {type: ControlPlaneHealthy, duration: 1m}\n  - {type: EveryNodeReady, duration: 0s}\n", nil},
		"unknown threshold":    {"  conditionThresholds:\n  - {type: ControlPlaneHealty, duration: 1m}\n", []string{`landscape.yaml:6:12: error: Landscape test: spec.conditionThresholds[0].type: there is no condition "ControlPlaneHealty"; did you mean ControlPlaneHealthy?; the conditions are APIServerAvailable, BackupBucketsReady, `}},
		"threshold twice":      {"  conditionThresholds:\n  - {type: EveryNodeReady, duration: 1m}\n  - {type: EveryNodeReady, duration: 2m}\n", []string{`landscape.yaml:7:12: error: Landscape test: spec.conditionThresholds[1].type: is already used by spec.conditionThresholds[0]`}},
		"threshold of nothing": {"  conditionThresholds:\n  - {type: EveryNodeReady, duration: 1ms}\n", []string{`landscape.yaml:6:38: warning: Landscape test: spec.conditionThresholds[0].duration: is less than a second`}},
		"threshold of days":    {"  conditionThresholds:\n  - {type: EveryNodeReady, duration: 3000m}\n", []string{`landscape.yaml:6:38: warning: Landscape test: spec.conditionThresholds[0].duration: is more than a day: a check fails for 50h0m0s before`}},
		"negative threshold":   {"  conditionThresholds:\n  - {type: EveryNodeReady, duration: -1m}\n", []string{`landscape.yaml:6:38: error: Landscape test: spec.conditionThresholds[0].duration: must not be negative`}},
		"protected kinds":      {"  deletionGate: {protectedKinds: [Shoot, PersistentVolumeClaim, Etcd, Etcd.druid.gardener.cloud, Deployment.apps, Service., Gateway.networking.istio.io]}\n", nil},
		"unknown kind":         {"  deletionGate: {protectedKinds: [PersistentVolumClaim]}\n", []string{`landscape.yaml:5:35: error: Landscape test: spec.deletionGate.protectedKinds[0]: "PersistentVolumClaim" is not a known kind; did you mean PersistentVolumeClaim?; write KIND.GROUP for kinds of other APIs [landscape/config]`}},
		"unknown kind of apps": {"  deletionGate: {protectedKinds: [Deploymnt.apps]}\n", []string{`the group "apps" has no kind "Deploymnt"; did you mean Deployment?`}},
		"no kind":              {"  deletionGate: {protectedKinds: [a.b]}\n", []string{`"a.b" is neither KIND nor KIND.GROUP, such as Etcd.druid.gardener.cloud`}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			l, violations, err := LoadFS(t.Context(), tree(map[string]string{"landscape.yaml": withSpec(test.spec)}), ".", Options{})
			require.NoError(t, err)
			found, err := l.Validate(t.Context(), schemas.Options{})
			require.NoError(t, err)
			all := append(violations, found...)
			require.Len(t, all, len(test.want), "%v", all)
			for i := range all {
				assert.Contains(t, all[i].String(), test.want[i])
			}
		})
	}
}

// TestWrongField: a value of the wrong type is a finding, and hides no other field.
func TestWrongField(t *testing.T) {
	for name, wrong := range map[string]string{"a list": "gardenAPI: [crd]", "a text": "clusters: runtime", "a number": "suspend: 5"} {
		t.Run(name, func(t *testing.T) {
			l, violations, err := LoadFS(t.Context(), tree(map[string]string{
				"landscape.yaml": withSpec("  " + wrong + "\n  external:\n  - {kind: Secret, namespace: garden, name: elsewhere}\n"),
			}), ".", Options{})
			require.NoError(t, err)
			assert.Empty(t, violations)
			require.Len(t, l.Config.Spec.External, 1)
			assert.Equal(t, "elsewhere", l.Config.Spec.External[0].Name)
			found, err := l.Validate(t.Context(), schemas.Options{})
			require.NoError(t, err)
			require.Len(t, found, 1, "%v", found)
			assert.Equal(t, "spec."+strings.SplitN(wrong, ":", 2)[0], found[0].Field)
		})
	}
}

func TestEmptyConfig(t *testing.T) {
	for name, test := range map[string]struct{ text, want string }{
		"empty":         {"", "landscape.yaml:1:1: error: must hold an object of kind Landscape"},
		"only comments": {"# later\n---\n", "landscape.yaml:1:1: error: must hold an object of kind Landscape"},
		"no name":       {"apiVersion: landscape.pergola.dev/v1alpha1\nkind: Landscape\nspec: {}\n", "metadata"},
		"another kind":  {namespace("a"), "landscape.yaml:1:1: error: must hold an object of kind Landscape"},
	} {
		t.Run(name, func(t *testing.T) {
			l, violations, err := LoadFS(t.Context(), tree(map[string]string{"landscape.yaml": test.text}), ".", Options{})
			require.NoError(t, err)
			found, err := l.Validate(t.Context(), schemas.Options{})
			require.NoError(t, err)
			all := append(violations, found...)
			require.True(t, schemas.HasErrors(all))
			assert.Contains(t, all[0].String(), test.want)
		})
	}
}

func TestFactsFile(t *testing.T) {
	tests := map[string]struct {
		facts, text string
		want        []string
	}{
		"good":         {"facts.yaml", "garden local: {}\n", nil},
		"empty":        {"facts.yaml", "", nil},
		"missing":      {"nope.yaml", "", nil}, // package render reports it
		"too large":    {"facts.yaml", "a: {}\n#" + strings.Repeat("x", 1<<20), []string{"facts.yaml:0:0 TooLong is larger than 1 MiB: it has 1.1 MiB; make several files of it"}},
		"binary":       {"facts.yaml", "a: \x00", []string{"facts.yaml:1:4 Invalid the file is binary: it holds a zero byte"}},
		"outside":      {"../../x.yaml", "", []string{`landscape.yaml:5:10 Invalid the file "../../x.yaml" is outside the repository`}},
		"absolute":     {"/etc/passwd", "", []string{`landscape.yaml:5:10 Invalid the file "/etc/passwd" must be given by a relative path with slashes`}},
		"a folder":     {"sub", "", []string{`landscape.yaml:5:10 Invalid the file "sub" is a folder`}},
		"of the layer": {"../base/facts.yaml", "", nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			l, violations := load(t, tree(map[string]string{
				"live/landscape.yaml": withSpec("  facts: " + test.facts + "\n"), "live/facts.yaml": test.text, "live/sub/x.md": "", "base/facts.yaml": "{}",
			}), "live", Options{})
			assert.Equal(t, test.want, violations)
			if test.want != nil {
				assert.Empty(t, l.Config.Spec.Facts, "nobody else reads it")
			} else {
				assert.Equal(t, test.facts, l.Config.Spec.Facts)
			}
		})
	}
	l, violations := load(t, tree(map[string]string{
		"live/landscape.yaml": withSpec("  layers: [../base]\n"), "base/landscape.yaml": withSpec("  facts: facts.yaml\n"), "base/facts.yaml": "garden local: {}\n",
	}), "live", Options{})
	assert.Empty(t, violations)
	assert.Equal(t, "../base/facts.yaml", l.Config.Spec.Facts, "relative to the file that says so")
}

// TestLinkedFactsAreNotRead: a symbolic link could lead anywhere.
func TestLinkedFactsAreNotRead(t *testing.T) {
	for _, target := range []string{"/etc/passwd", "../outside.yaml", "inside.yaml"} {
		dir := onDisk(t, map[string]string{"landscape.yaml": withSpec("  facts: facts.yaml\n"), "inside.yaml": namespace("a")})
		require.NoError(t, os.Symlink(target, filepath.Join(dir, "facts.yaml")))
		l, violations, err := Load(t.Context(), dir, Options{})
		require.NoError(t, err)
		assert.Equal(t, []string{`landscape.yaml:5:10 Invalid the file "facts.yaml" is, or lies behind, a symbolic link`}, summaries(violations))
		assert.Empty(t, l.Config.Spec.Facts)
	}
}

// onDisk writes files into a new folder.
func onDisk(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		file := filepath.Join(dir, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o700))
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	}
	return dir
}

// TestIrregularFilesAreNotOpened: reading a named pipe would block forever.
func TestIrregularFilesAreNotOpened(t *testing.T) {
	pipe := func(t *testing.T, dir, name string) {
		t.Helper()
		_ = os.Remove(filepath.Join(dir, name))
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700))
		require.NoError(t, syscall.Mkfifo(filepath.Join(dir, name), 0o600))
	}
	for name, want := range map[string]string{
		"landscape.yaml":                         "landscape.yaml:0:0 Invalid is a named pipe, where a file is expected",
		"facts.yaml":                             `landscape.yaml:5:10 Invalid the file "facts.yaml" is not a regular file`,
		"a/seed.yaml":                            "a/seed.yaml:0:0 Invalid is a named pipe, where a file is expected",
		"a/seed.cue":                             "a/seed.cue:0:0 Invalid is a named pipe, where a file is expected",
		"a/notes.txt":                            "a/notes.txt:0:0 Invalid is a named pipe, where a file is expected",
		"golden/x/y.yaml":                        "golden/x/y.yaml:0:0 Invalid is a named pipe, where a file is expected",
		"components/seed/vpa/patch.yaml":         "components/seed/vpa/patch.yaml:0:0 Invalid is a named pipe, where a file is expected",
		"components/seed/vpa/kustomization.yaml": "components/seed/vpa/kustomization.yaml:0:0 Invalid is a named pipe, where a file is expected",
	} {
		t.Run(name, func(t *testing.T) {
			dir := onDisk(t, map[string]string{"landscape.yaml": withSpec("  facts: facts.yaml\n"), "facts.yaml": "{}", "components/seed/vpa/kustomization.yaml": "{}"})
			pipe(t, dir, name)
			_, violations, err := Load(t.Context(), dir, Options{})
			require.NoError(t, err)
			assert.Contains(t, summaries(violations), want)
			assert.True(t, name == "landscape.yaml" || len(violations) == 1, "%v", violations)
		})
	}
}

// TestSpecialFolders: no file in a special folder is ignored silently.
func TestSpecialFolders(t *testing.T) {
	dir := onDisk(t, map[string]string{
		"landscape.yaml": bareConfig, "operations/rotate.yaml": "kind: Operation\n", "operations/README.md": "", "shared/vpa/kustomization.yaml.txt": "",
		"components/README.md": "", "components/vpa.yaml": "{}", "components/seed/x.yaml": "{}", "components/seed/vpa/other.yaml": "{}", "components/sead/vpa/kustomization.yaml": "{}",
		"components/seed/a/kustomization.yml": "{}", "components/seed/b/kustomisation.yaml": "{}", "components/seed/c/Kustomization.yaml": "{}",
		"components/seed/d/README.md": "", "components/seed/e/deep/kustomization.yaml": "{}", "components/Garden/vpa/kustomization.yaml": "{}",
	})
	require.NoError(t, os.Symlink("../../shared/vpa", filepath.Join(dir, "components", "seed", "linked")))
	_, violations, err := Load(t.Context(), dir, Options{})
	require.NoError(t, err)
	const overlay = "is not an overlay: overlays are folders components/OWNER/COMPONENT with a kustomization.yaml"
	assert.Equal(t, []string{
		`components/Garden:0:0 NotSupported "Garden" owns no components; did you mean garden?; overlays are in components/garden, components/seed or components/shoot`,
		`components/sead:0:0 NotSupported "sead" owns no components; did you mean seed?; overlays are in components/garden, components/seed or components/shoot`,
		"components/seed/a:0:0 Required the overlay has no file kustomization.yaml: rename kustomization.yml",
		"components/seed/b:0:0 Required the overlay has no file kustomization.yaml: rename kustomisation.yaml",
		"components/seed/c:0:0 Required the overlay has no file kustomization.yaml: rename Kustomization.yaml",
		"components/seed/d:0:0 Required the overlay has no file kustomization.yaml",
		"components/seed/e:0:0 Required the overlay has no file kustomization.yaml",
		"components/seed/linked:0:0 Forbidden is a symbolic link: overlays must be folders of the landscape itself",
		"components/seed/vpa:0:0 Required the overlay has no file kustomization.yaml",
		"components/seed/x.yaml:0:0 Invalid " + overlay,
		"components/vpa.yaml:0:0 Invalid " + overlay,
		"operations/rotate.yaml:1:1 NotSupported must be landscape.pergola.dev/v1alpha1",
		`operations/rotate.yaml:1:1 Invalid "" names no object that has operations: write KIND NAME or KIND NAMESPACE/NAME, where KIND is one of Garden, Gardenlet, ManagedSeed, Project, Seed, Shoot`,
		"operations/rotate.yaml:1:1 Required must be set, for example to reconcile",
	}, summaries(violations))

	dir = onDisk(t, map[string]string{"base/garden/vpa/kustomization.yaml": "{}", "live/landscape.yaml": bareConfig, "live/golden": "a file"})
	require.NoError(t, os.Symlink("../base", filepath.Join(dir, "live", "components")))
	l, violations, err := Load(t.Context(), filepath.Join(dir, "live"), Options{Root: dir})
	require.NoError(t, err)
	assert.Equal(t, []string{
		"components:0:0 Forbidden is a symbolic link: components must be a folder of the landscape itself; to share it, put it into a folder of spec.layers",
		"golden:0:0 Invalid must be a folder: the name is reserved",
	}, summaries(violations))
	assert.Empty(t, l.Overlays)
}

// TestNestedLandscapes: a nested landscape is a warning, unless it is a layer or beside this one.
func TestNestedLandscapes(t *testing.T) {
	inside := tree(map[string]string{"landscape.yaml": withLayers("[base]"), "base/landscape.yaml": bareConfig, "old/landscape.yaml": bareConfig, "old/ns.yaml": namespace("lost")})
	_, violations, err := LoadFS(t.Context(), inside, ".", Options{})
	require.NoError(t, err)
	require.Len(t, violations, 1)
	assert.Equal(t, "old/landscape.yaml", violations[0].File)
	assert.Equal(t, schemas.SeverityWarning, violations[0].Severity)

	beside := tree(map[string]string{"ns.yaml": namespace("base"), "a/landscape.yaml": withLayers("[..]"), "b/landscape.yaml": withLayers("[..]")})
	l, lines := load(t, beside, "a", Options{})
	assert.Empty(t, lines)
	assert.Equal(t, []string{"Namespace base"}, names(l))
}

// TestPlacesOfSyntaxErrors: a finding has its place, even if the parser does not report it.
func TestPlacesOfSyntaxErrors(t *testing.T) {
	for name, test := range map[string]struct{ file, text, want string }{
		"alias in a Secret": {"s.yaml", "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\nstringData:\n  a: \"*hunter2\"\n  password: *hunter2\n", "s.yaml:6:13 Invalid an alias (*NAME) refers to an anchor (&NAME) that does not exist before it; put text that begins with * in quotes"},
		"alias in a list":   {"s.yaml", "---\na: b\n---\na: [x,*b]\n", "s.yaml:4:7 Invalid an alias"},
		"JSON":              {"a.json", "{\n  \"a\": 1,\n  \"b\": [1, 2\n}\n", "a.json:4:1 Invalid this is not JSON: a comma or a closing bracket is expected and \"}\" is found"},
		"JSON ends":         {"a.json", "{\n  \"a\": 1,\n  \"b\": [1,\n", "a.json:3:"},
	} {
		t.Run(name, func(t *testing.T) {
			_, violations := parse(t, test.file, test.text, Options{})
			text := strings.Join(summaries(violations), "\n")
			assert.Contains(t, text, test.want)
			assert.NotContains(t, text, "hunter2")
		})
	}
}
