// SPDX-License-Identifier: Apache-2.0

package why

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pergola-dev/pergola/components"
	"github.com/pergola-dev/pergola/landscapes"
	"github.com/pergola-dev/pergola/schemas"
	"github.com/pergola-dev/pergola/source/blame"
)

// writeDemoLandscape writes the demonstration landscape and more files as layer "base", with
// landscape "land" on top.
func writeDemoLandscape(t *testing.T, more map[string]string) *landscapes.Landscape {
	t.Helper()
	root := t.TempDir()
	write := func(name, text string) {
		file := filepath.Join(root, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
		require.NoError(t, os.WriteFile(file, []byte(text), 0o644))
	}
	demo := os.DirFS("../../landscapes/local")
	for _, dir := range []string{"garden", "gardenconfig", "projects", "seeds"} {
		require.NoError(t, fs.WalkDir(demo, dir, func(name string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			data, err := fs.ReadFile(demo, name)
			write("base/"+name, string(data))
			return err
		}))
	}
	write("land/landscape.yaml", "apiVersion: landscape.pergola.dev/v1alpha1\nkind: Landscape\nmetadata:\n  name: test\nspec:\n  catalogue:\n    version: "+
		components.Version+"\n  layers:\n  - ../base\n"+more["settings"])
	for name, text := range more {
		if name != "settings" {
			write("land/"+name, text)
		}
	}
	l, violations, err := landscapes.Load(t.Context(), filepath.Join(root, "land"), landscapes.Options{Root: root})
	require.NoError(t, err)
	require.False(t, schemas.HasErrors(violations), "%v", violations)
	return l
}

func explain(t *testing.T, l *landscapes.Landscape, question string, change ...func(*Options)) []Answer {
	t.Helper()
	opts := Options{Catalogue: components.FS, Now: time.Unix(1_780_000_000, 0)}
	for _, c := range change {
		c(&opts)
	}
	answers, err := Explain(t.Context(), l, question, opts)
	require.NoError(t, err)
	require.NotEmpty(t, answers)
	return answers
}

func answersText(t *testing.T, answers []Answer) string {
	t.Helper()
	var out bytes.Buffer
	require.NoError(t, Print(&out, answers, func(file string) string { return file }))
	return out.String()
}

const shootOnTop = "apiVersion: core.gardener.cloud/v1beta1\nkind: Shoot\nmetadata:\n  name: local\n  namespace: garden-local\nspec:\n  maintenance:\n    timeWindow:\n      begin: 200000+0100\n      end: 210000+0100\n"

func TestDeclaredFieldNamesItsLayer(t *testing.T) {
	l := writeDemoLandscape(t, map[string]string{"shoot.yaml": shootOnTop})
	for question, want := range map[string]Position{
		"Shoot garden-local/local.spec.maintenance.timeWindow.begin": {Kind: positionDeclaration, File: "shoot.yaml", Line: 9, Column: 14, IsExact: true},
		"shoots garden-local/local.spec.kubernetes.version":          {Kind: positionDeclaration, File: "../base/projects/local/shoot.yaml", Layer: "../base", IsExact: true},
		"Shoot local.spec.provider.workers[local].machine.type":      {Kind: positionDeclaration, File: "../base/projects/local/shoot.yaml", Layer: "../base", IsExact: true},
	} {
		a := explain(t, l, question)[0]
		require.Len(t, a.WrittenAt, 1, question)
		if want.Line == 0 {
			assert.Positive(t, a.WrittenAt[0].Line)
			want.Line, want.Column = a.WrittenAt[0].Line, a.WrittenAt[0].Column
		}
		assert.Equal(t, want, a.WrittenAt[0], question)
		assert.Equal(t, "virtual", a.Subject.Cluster)
		assert.Equal(t, "garden/pergola-inventory.landscape.test.virtual", a.Inventory)
	}
}

func TestDefaultedField(t *testing.T) {
	a := explain(t, writeDemoLandscape(t, nil), "Shoot garden-local/local.spec.maintenance.autoUpdate.kubernetesVersion")[0]
	if len(a.DerivedFrom) == 1 {
		assert.Equal(t, "the default of the API", a.DerivedFrom[0].Default)
	}
	require.NotEmpty(t, a.WrittenAt)
}

func TestRenderedFieldFollowsFromDeclarations(t *testing.T) {
	l := writeDemoLandscape(t, map[string]string{
		"garden.yaml": "apiVersion: operator.gardener.cloud/v1alpha1\nkind: Garden\nmetadata:\n  name: local\nspec:\n  virtualCluster:\n    controlPlane:\n      highAvailability: {}\n",
	})
	blamed := map[string]int{}
	a := explain(t, l, "Deployment garden/virtual-garden-kube-apiserver.spec.replicas", func(o *Options) {
		o.Blame = func(_ context.Context, file string, line int) (blame.Result, error) {
			blamed[filepath.Base(file)] = line
			return blame.Result{Commit: &blame.Commit{Hash: "0123456789abcdef", Author: "Ada", Subject: "Three of each", Date: time.Unix(0, 0).UTC()}}, nil
		}
	})[0]
	assert.Equal(t, &Value{Value: int64(3)}, a.Value)
	require.Len(t, a.DerivedFrom, 1)
	assert.Equal(t, "Garden local", a.DerivedFrom[0].Object)
	assert.Equal(t, "spec.virtualCluster.controlPlane.highAvailability", a.DerivedFrom[0].Field)
	assert.Equal(t, "garden.yaml:8", placeText(*a.DerivedFrom[0].Position))
	assert.Equal(t, map[string]int{"garden.yaml": 8}, blamed, "the catalogue of the program has no history")
	require.Len(t, a.WrittenAt, 1)
	assert.Equal(t, "components/kubernetes/apiserver.cue", a.WrittenAt[0].File)
	assert.True(t, a.WrittenAt[0].IsExact)
	assert.Contains(t, a.WrittenAt[0].Text, "replicas:")
	assert.Equal(t, "garden/kube-apiserver", a.Component)
	shown := answersText(t, []Answer{a})
	assert.Contains(t, shown, "Deployment garden/virtual-garden-kube-apiserver on cluster runtime: spec.replicas\n  value    3\n")
	assert.Contains(t, shown, "0123456789 1970-01-01, Ada: Three of each")
}

func placeText(p Position) string { return p.File + ":" + itoa(p.Line) }

func itoa(n int) string { raw, _ := json.Marshal(n); return string(raw) }

func TestImageAndItsOverride(t *testing.T) {
	const question = "Deployment garden/virtual-garden-kube-apiserver.spec.template.spec.containers[kube-apiserver].image"
	a := explain(t, writeDemoLandscape(t, nil), question)[0]
	require.NotNil(t, a.Image)
	assert.Equal(t, "kube-apiserver", a.Image.Name)
	assert.Equal(t, "components/imagevector.yaml", a.Image.Position.File)
	line := strings.Split(string(readDemoFile(t, "imagevector.yaml")), "\n")[a.Image.Position.Line-1]
	assert.Equal(t, "- name: kube-apiserver", strings.TrimSpace(line))
	require.Len(t, a.DerivedFrom, 1)
	assert.Equal(t, "spec.virtualCluster.kubernetes.version", a.DerivedFrom[0].Field)

	l := writeDemoLandscape(t, map[string]string{"settings": "  images:\n  - name: kube-apiserver\n    repository: mirror.example.org/kube-apiserver\n"})
	a = explain(t, l, question, func(o *Options) { o.MaxRenders, o.Cluster = 1, "runtime" })[0]
	assert.Equal(t, "landscape.yaml", a.Image.Position.File)
	assert.Equal(t, 11, a.Image.Position.Line)
	assert.Equal(t, "mirror.example.org/kube-apiserver:v1.34.1", a.Value.Value)
}

func readDemoFile(t *testing.T, name string) []byte {
	t.Helper()
	data, err := fs.ReadFile(components.FS, name)
	require.NoError(t, err)
	return data
}

func TestOverlay(t *testing.T) {
	l := writeDemoLandscape(t, map[string]string{
		"components/garden/etcd-druid/kustomization.yaml": "patches:\n- path: more.yaml\n",
		"components/garden/etcd-druid/more.yaml":          "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: etcd-druid\n  namespace: garden\nspec:\n  template:\n    spec:\n      containers:\n      - name: etcd-druid\n        resources:\n          requests:\n            cpu: 70m\n",
	})
	a := explain(t, l, "Deployment garden/etcd-druid.spec.template.spec.containers[etcd-druid].resources.requests.cpu", func(o *Options) { o.MaxRenders, o.Cluster = 1, "runtime" })[0]
	assert.Equal(t, &Value{Value: "70m"}, a.Value)
	require.Len(t, a.WrittenAt, 2)
	assert.Equal(t, "components/charts/etcd-druid/templates/deployment.yaml", a.WrittenAt[0].File)
	assert.Equal(t, "cpu: 50m", a.WrittenAt[0].Text)
	assert.Equal(t, Position{Kind: positionOverlay, File: "components/garden/etcd-druid/more.yaml", Line: 13, IsExact: true, Text: "cpu: 70m"}, a.WrittenAt[1])

	a = explain(t, l, "Deployment garden/etcd-druid.spec.replicas", func(o *Options) { o.MaxRenders, o.Cluster = 1, "runtime" })[0]
	assert.Len(t, a.WrittenAt, 1, "the overlay changes another field of it")
}

// TestPlacesOfOverlays: every change by an overlay has a line, so that its commit can be found.
func TestPlacesOfOverlays(t *testing.T) {
	const dir = "components/garden/etcd-druid/"
	l := writeDemoLandscape(t, map[string]string{
		dir + "kustomization.yaml": "resources:\n- added.yaml\nlabels:\n- pairs:\n    team: a\ncommonAnnotations:\n  note: b\n" +
			"replicas:\n- name: etcd-druid\n  count: 3\npatches:\n- path: around.yaml\n- target: {kind: Deployment}\n  patch: |-\n    - op: add\n      path: /spec/template/spec/nodeName\n      value: one\n",
		dir + "added.yaml":  "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: added\n  namespace: garden\ndata:\n  key: value\n",
		dir + "around.yaml": "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: etcd-druid\n  namespace: garden\nspec:\n  template:\n    spec:\n      nodeSelector: {disk: ssd}\n",
	})
	for question, want := range map[string]Position{
		"ConfigMap garden/added":                                            {File: dir + "added.yaml", Line: 1, IsExact: true, Text: "apiVersion: v1"},
		"ConfigMap garden/added.data.key":                                   {File: dir + "added.yaml", Line: 7, IsExact: true, Text: "key: value"},
		"Deployment garden/etcd-druid.metadata.labels.team":                 {File: dir + "kustomization.yaml", Line: 5, IsExact: true, Text: "team: a"},
		"Deployment garden/etcd-druid.metadata.annotations.note":            {File: dir + "kustomization.yaml", Line: 7, IsExact: true, Text: "note: b"},
		"Deployment garden/etcd-druid.spec.replicas":                        {File: dir + "kustomization.yaml", Line: 8, Text: "replicas:"},
		"Deployment garden/etcd-druid.spec.template.spec.nodeName":          {File: dir + "kustomization.yaml", Line: 16, IsExact: true, Text: "path: /spec/template/spec/nodeName"},
		"Deployment garden/etcd-druid.spec.template.spec.nodeSelector.disk": {File: dir + "around.yaml", Line: 9, Text: "nodeSelector: {disk: ssd}"},
	} {
		want.Kind = positionOverlay
		var blamed []string
		a := explain(t, l, question, func(o *Options) {
			o.MaxRenders, o.Cluster = 1, "runtime"
			o.Blame = func(_ context.Context, file string, line int) (blame.Result, error) {
				blamed = append(blamed, fmt.Sprintf("%s:%d", filepath.Base(file), line))
				return blame.Result{Reason: "x"}, nil
			}
		})[0]
		want.Change = &blame.Result{Reason: "x"}
		assert.Equal(t, want, a.WrittenAt[len(a.WrittenAt)-1], question)
		assert.Contains(t, blamed, fmt.Sprintf("%s:%d", path.Base(want.File), want.Line), question)
		if strings.HasPrefix(question, "ConfigMap") {
			assert.Len(t, a.WrittenAt, 1, "no template has it: %s", question)
		}
	}

	line, exact := findInTransformer([]string{"images:", "- name: a", "  newTag: v1", "- name: b", "  newTag: v2"}, steps{{key: "spec"}, {key: "image"}}, "r/b:v2")
	assert.Equal(t, 5, line)
	assert.True(t, exact)
	line, exact = findInTransformer([]string{"replacements:", "- source: {}"}, steps{{key: "spec"}, {key: "x"}}, "y")
	assert.Equal(t, 1, line)
	assert.False(t, exact)
	line, _ = findInTransformer([]string{"labels:", "- pairs: {}"}, steps{{key: "spec"}, {key: "x"}}, "y")
	assert.Zero(t, line, "labels are no other fields")
}

func TestSeveralAnswers(t *testing.T) {
	l := writeDemoLandscape(t, nil)
	answers := explain(t, l, "deploy etcd-druid", func(o *Options) { o.MaxRenders = 1 })
	require.Len(t, answers, 2)
	assert.Equal(t, []string{"runtime", "local"}, []string{answers[0].Subject.Cluster, answers[1].Subject.Cluster})
	assert.Equal(t, "garden/etcd-druid", answers[0].ManagedResource)
	answers = explain(t, l, "Deployment garden/etcd-druid", func(o *Options) { o.MaxRenders, o.Owner = 1, "seed/local" })
	require.Len(t, answers, 1)
	assert.Equal(t, "seed local", answers[0].Owner)
}

func TestNearestNames(t *testing.T) {
	l := writeDemoLandscape(t, nil)
	for question, want := range map[string]string{
		"Deployment garden/etcd-druit":                                     "did you mean garden/etcd-druid?",
		"Deployment garden/kube-apiserver.spec":                            "did you mean garden/virtual-garden-kube-apiserver",
		"Deploymnt garden/etcd-druid":                                      "did you mean Deployment?",
		"Deployment garden/etcd-druid.spec.replica":                        "spec has no replica; did you mean replicas?",
		"Shoot garden-local/locl.spec":                                     "did you mean garden-local/local?",
		"Shoot garden-local/local.spec.kubernetes.vrsion":                  "spec.kubernetes has no vrsion; did you mean version?",
		"Shoot garden-local/local.metadata[foo]":                           "metadata has no foo; it has",
		"Shoot garden-local/local.metadata[example.org/y]":                 "metadata has no example.org/y; it has",
		"Garden local.spec.virtualCluster.dns.domains[7]":                  "has no 7; it has",
		"Garden local.metadata.name.first":                                 "is a plain value",
		"Deployment garden/etcd-druid.spec.template.spec.containers[etcd]": "has no etcd; it has etcd-druid",
	} {
		opts := Options{Catalogue: components.FS}
		if strings.Contains(question, "etcd-druid") {
			opts.Owner = "seed/local" // renders less
		}
		_, err := Explain(t.Context(), l, question, opts)
		var unknown *UnknownError
		require.ErrorAs(t, err, &unknown, question)
		assert.Contains(t, err.Error(), want, question)
	}
	for _, question := range []string{"", "Shoot", strings.Repeat("x", maxQuestion+1)} {
		_, err := Explain(t.Context(), l, question, Options{Catalogue: components.FS})
		require.Error(t, err)
	}
}

func TestSecretsAreNotShown(t *testing.T) {
	l := writeDemoLandscape(t, map[string]string{"secret.yaml": "apiVersion: v1\nkind: Secret\nmetadata:\n  name: mine\n  namespace: garden-local\nstringData:\n  password: correct-horse\n"})
	for _, question := range []string{"Secret garden-local/mine.stringData.password", "Secret garden-local/mine.stringData", "Secret garden-local/mine"} {
		answers := explain(t, l, question)
		raw, err := json.Marshal(answers)
		require.NoError(t, err)
		assert.NotContains(t, string(raw)+answersText(t, answers), "correct-horse", question)
	}
	assert.True(t, explain(t, l, "Secret garden-local/mine.stringData.password")[0].Value.Hidden)
	assert.Equal(t, 7, explain(t, l, "Secret garden-local/mine.stringData.password")[0].WrittenAt[0].Line)
}

func TestAnswersAreDeterministic(t *testing.T) {
	l := writeDemoLandscape(t, nil)
	const question = "Deployment garden/gardener-resource-manager.spec.replicas"
	seed := func(o *Options) { o.Owner = "seed/local" }
	answer := explain(t, l, question, seed)
	assert.Equal(t, answersText(t, answer), answersText(t, explain(t, l, question, seed)))
	a := explain(t, l, question, seed, func(o *Options) { o.MaxRenders = 3 })[0]
	assert.Contains(t, strings.Join(a.Notes, "\n"), "more than 3 renders")
}

func TestInYAML(t *testing.T) {
	lines := strings.Split("kind: Service\nspec:\n  replicas: 0\n---\nkind: Deployment\nmetadata:\n  name: {{ .Values.name }}\nspec:\n  {{- if .Values.x }}\n  replicas: 1\n  {{- end }}\n  template:\n    spec:\n      containers:\n      - image: x\n        name: app\n        env:\n        - name: A\n          value: b\n", "\n")
	object := map[string]any{"kind": "Deployment", "spec": map[string]any{"replicas": int64(1), "selector": map[string]any{}, "template": map[string]any{"spec": map[string]any{
		"containers": []any{map[string]any{"name": "app", "image": "x", "env": []any{map[string]any{"name": "A", "value": "b"}}}}}}}}
	for path, want := range map[string]struct {
		line  int
		exact bool
	}{
		"spec.replicas": {10, true},
		"spec.template.spec.containers[app].image":             {15, true},
		"spec.template.spec.containers[app].env[name=A].value": {19, true},
		"spec.selector": {8, false},
	} {
		list, _, err := followPath(object, path)
		require.NoError(t, err)
		line, exact := findInYAML(lines, refOf("Deployment", "x"), list)
		assert.Equal(t, want.line, line, path)
		assert.Equal(t, want.exact, exact, path)
	}
}

func TestCUEReaderFollowsReferences(t *testing.T) {
	catalogue := fstest.MapFS{
		"garden/a/component.cue": {Data: []byte("package component\n\nimport k \"pergola.dev/components/parts\"\n\nobjects: [\n\t{\n\t\tkind: \"Deployment\"\n\t\tspec: _spec & {\n\t\t\tif true {\n\t\t\t\treplicas: 3\n\t\t\t}\n\t\t}\n\t},\n]\n_spec: template: spec: k.#Pod & {containers: [{name: \"app\", image: \"x\"}]}\n")},
		"parts/pod.cue":          {Data: []byte("package parts\n\n#Pod: {\n\tserviceAccountName: \"default\"\n}\n")},
	}
	for _, test := range []struct {
		list  steps
		file  string
		line  int
		exact bool
	}{
		{steps{{key: "spec"}, {key: "replicas"}}, "garden/a/component.cue", 10, true},
		{steps{{key: "spec"}, {key: "template"}, {key: "spec"}, {key: "serviceAccountName"}}, "parts/pod.cue", 4, true},
		{steps{{key: "spec"}, {key: "template"}, {key: "spec"}, {key: "containers"}, {index: 0, name: "name", text: "app"}, {key: "image"}}, "garden/a/component.cue", 15, true},
		{steps{{key: "spec"}, {key: "nothing"}}, "garden/a/component.cue", 8, false},
		{nil, "garden/a/component.cue", 7, true},
	} {
		found := newCUEReader(catalogue).find("garden/a/component.cue", 7, test.list)
		assert.Equal(t, test.file, found.file, test.list.String())
		assert.Equal(t, test.line, found.line, test.list.String())
		assert.Equal(t, test.exact, found.exact, test.list.String())
	}
}

func TestTextVariation(t *testing.T) {
	for text, want := range map[string]string{
		"1.34.1": "1.34.2", "v1.2": "v1.3", "10Gi": "11Gi", "30m": "31m", "10.1.0.0/16": "10.2.0.0/16", "local": "localx", "": "x", "255.0.0.1": "1.0.0.1",
	} {
		assert.Equal(t, want, textVariation(text))
	}
}

// TestObjectsInShoot: each Shoot is a separate cluster, but all Shoots share a folder of the
// render.
func TestObjectsInShoot(t *testing.T) {
	l := writeDemoLandscape(t, nil)
	const question = "ClusterRoleBinding gardener.cloud:target:kube-scheduler"
	for _, cluster := range []string{"", "shoot", "shoot garden-local/local"} {
		answers := explain(t, l, question, func(o *Options) { o.Cluster = cluster })
		require.Len(t, answers, 1)
		assert.Equal(t, "shoot garden-local/local", answers[0].Subject.Cluster)
	}
	for _, cluster := range []string{"local", "virtual"} {
		_, err := Explain(t.Context(), l, question, Options{Catalogue: components.FS, Cluster: cluster})
		assert.True(t, errors.As(err, new(*UnknownError)), cluster)
	}
	_, err := Explain(t.Context(), l, question, Options{Catalogue: components.FS, Cluster: "shoot garden-local/other"})
	require.ErrorContains(t, err, `--cluster shoot garden-local/other: there is no cluster of the landscape "shoot garden-local/other"`)
	assert.False(t, errors.As(err, new(*UnknownError)), "a usage error")
}
