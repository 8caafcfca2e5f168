// SPDX-License-Identifier: Apache-2.0

package golden

import (
	"bytes"
	"io/fs"
	"maps"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pergola-dev/pergola/components"
)

const seedComponent = `package component

component: {
	enabled: seed.spec.settings.scheduling.visible
	secrets: ca: {kind: "certificate", certType: "ca"}
	bundles: app: {cluster: "seed", class: "seed", source: cue: [{
		apiVersion: "v1", kind: "ConfigMap"
		metadata: {name: "app", namespace: "garden"}
		data: {region: seed.spec.provider.region, ca: facts.secrets.ca.name, "kubernetes": "\(kubernetes.runtime.minor)"}
	}]}
}
`

// catalogue has a component for seeds with some cases.
func catalogue(t *testing.T, cases map[string]string) fstest.MapFS {
	t.Helper()
	out := fstest.MapFS{
		"imagevector.yaml":        {Data: []byte("images: []\n")},
		"seed/app/component.cue":  {Data: []byte(seedComponent)},
		"seed/bare/component.cue": {Data: []byte(strings.Replace(seedComponent, "bundles: app", "bundles: bare", 1))},
	}
	for _, name := range []string{"cue.mod/module.cue", "inputs.cue", "seed/cases/default.yaml"} {
		data, err := fs.ReadFile(components.FS, name)
		require.NoError(t, err)
		out[name] = &fstest.MapFile{Data: data}
	}
	for name, text := range cases {
		out["seed/app/cases/"+name+".yaml"] = &fstest.MapFile{Data: []byte(text)}
	}
	return out
}

func runAll(t *testing.T, from fs.FS, only ...string) (*Report, string) {
	t.Helper()
	report, err := Run(t.Context(), from, only)
	require.NoError(t, err)
	var out bytes.Buffer
	require.NoError(t, Print(&out, report))
	return report, out.String()
}

// withRecord adds the record of its cases to a catalogue.
func withRecord(t *testing.T, c fstest.MapFS) fstest.MapFS {
	t.Helper()
	report, _ := runAll(t, c, "seed/app")
	out := maps.Clone(c)
	for name, data := range report.Files {
		out[name] = &fstest.MapFile{Data: data}
	}
	return out
}

const caseText = "about: As most are.\n"

func TestCases(t *testing.T) {
	c := catalogue(t, map[string]string{
		"default": caseText,
		"hidden":  "about: 'Off: a seed that takes no Shoots.'\ndeclarations:\n- apiVersion: core.gardener.cloud/v1beta1\n  kind: Seed\n  metadata: {name: local}\n  spec: {settings: {scheduling: {visible: false}}}\n",
		"facts":   "about: In a cluster.\nfacts:\n  clusters: {seed: {kubernetesVersion: 1.33.1}}\n  secrets: {ca: {name: ca-1}}\n",
	})
	report, text := runAll(t, c)
	assert.Equal(t, Summary{Components: 2, Cases: 3, NewCases: 3, WithoutCases: []string{"seed/bare"}}, report.Summary)
	assert.False(t, report.IsCurrent())
	assert.Contains(t, text, "Golden: 3 cases of 2 components: 3 not recorded yet.\n")
	assert.Contains(t, text, "seed/app, case default: As most are.\n  + nothing is recorded yet\n")
	assert.Contains(t, text, "Without cases: seed/bare\n")
	assert.Equal(t, "enabled: false\n", string(report.Files["seed/app/cases/hidden/component.yaml"]))
	assert.NotContains(t, report.Files, "seed/app/cases/hidden/app.yaml")
	assert.Contains(t, string(report.Files["seed/app/cases/default/component.yaml"]), "certType: ca")
	assert.Contains(t, string(report.Files["seed/app/cases/default/app.yaml"]), "unresolved:\n  - secret ca\n---\napiVersion: v1\ndata:\n  ca: ca-XXXXXXXX\n")
	assert.Contains(t, string(report.Files["seed/app/cases/facts/app.yaml"]), "ca: ca-1\n  kubernetes: \"33\"\n")

	_, text = runAll(t, withRecord(t, c), "seed/app")
	assert.Equal(t, "Golden: 3 cases of 1 component, all as recorded.\n", text)
}

func TestDifferencesNameObjectAndField(t *testing.T) {
	c := withRecord(t, catalogue(t, map[string]string{"default": caseText}))
	c["seed/app/component.cue"] = &fstest.MapFile{Data: []byte(strings.Replace(seedComponent, "region: seed.spec.provider.region", `region: "elsewhere"`, 1))}
	c["seed/app/cases/default/old.yaml"] = &fstest.MapFile{Data: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: old\n")}
	c["seed/app/cases/gone/app.yaml"] = &fstest.MapFile{Data: []byte("x: y\n")}
	report, text := runAll(t, c, "seed/app")
	assert.Equal(t, Summary{Components: 1, Cases: 1, DifferentCases: 1, Changed: 1, Removed: 1, Stale: 2}, report.Summary)
	assert.Equal(t, []string{"seed/app/cases/default/old.yaml", "seed/app/cases/gone/app.yaml"}, report.Stale)
	assert.Contains(t, text, "Objects: 0 added, 1 changed, 1 removed.\n")
	assert.Contains(t, text, "  ~ ConfigMap garden/app (from components/seed/app/component.cue:7)\n    data.region: local → elsewhere\n")
	assert.Contains(t, text, "-  region: local\n      +  region: elsewhere\n")
	assert.Contains(t, text, "  - ConfigMap old\n")
	d := report.Components[0].Cases[0].Differences[0]
	lines := strings.Split(string(c["seed/app/cases/default/app.yaml"].Data), "\n")
	assert.Equal(t, "  region: local", lines[d.Line-1], "the line of the record")

	var annotations bytes.Buffer
	require.NoError(t, Annotations(&annotations, report, "components/"))
	assert.Contains(t, annotations.String(), "::error file=components/seed/app/cases/default/app.yaml,line=")
	assert.Contains(t, annotations.String(), "title=golden%3A seed/app%2C case default::~ ConfigMap garden/app")
	assert.Equal(t, 4, strings.Count(annotations.String(), "\n"), "a line breaks in none of them:\n%s", annotations.String())
}

func TestOrderAloneIsADifference(t *testing.T) {
	found := Compare("a.yaml", []byte("a: 1\nb: 2\n"), []byte("b: 2\na: 1\n"))
	require.Len(t, found, 1)
	assert.Empty(t, found[0].Fields)
	assert.Contains(t, found[0].String(), "only the order or the form differs")
	one, two := "apiVersion: v1\nkind: A\nmetadata: {name: a}\n", "apiVersion: v1\nkind: A\nmetadata: {name: b}\n"
	found = Compare("a.yaml", []byte(one+"---\n"+two), []byte(two+"---\n"+one))
	require.Len(t, found, 1)
	assert.Equal(t, "order of the objects", found[0].Object)
	assert.Empty(t, Compare("a.yaml", []byte(one), []byte(one)))
}

func TestSecretValuesAreNotShown(t *testing.T) {
	secret := func(value string) []byte {
		return []byte("apiVersion: v1\nkind: Secret\nmetadata:\n  name: a\ndata:\n  key: " + value + "\n")
	}
	found := Compare("a.yaml", secret("b25lLXNlY3JldA=="), secret("YW5vdGhlcg=="))
	require.Len(t, found, 1)
	assert.NotContains(t, found[0].String(), "b25l")
	assert.Contains(t, found[0].String(), "data.key")
}

func TestInvalidCases(t *testing.T) {
	for text, want := range map[string]string{
		"about: x\nbsae: y\n":             "field bsae not found",
		"base: default\n":                 "about: say in a sentence what the case shows",
		"about: x\nbase: nowhere\n":       "seed/cases/nowhere.yaml",
		"about: x\nbase: ../x\n":          "want the name of a file in seed/cases",
		"about: x\nrecord: all\n":         "want objects or digests",
		"about: x\nfacts: {secrts: {}}\n": "secrts",
		"about: x\ndeclarations:\n- {apiVersion: core.gardener.cloud/v1beta1, kind: Seed, metadata: {name: local}, spec: {settings: {schedulin: {}}}}\n": "schedulin",
		"about: x\ndeclarations:\n- {apiVersion: core.gardener.cloud/v1beta1, kind: Seed, metadata: {name: local}, spec: {provider: {region: null}}}\n":  "spec.provider.region",
		"about: x\nlandscape:\n  images:\n  - {name: nothing, tag: v1}\n":                                                                                "nothing",
	} {
		report, printed := runAll(t, catalogue(t, map[string]string{"wrong": text, "right": caseText}), "seed/app")
		assert.Equal(t, 1, report.Summary.FailedCases, text)
		assert.Equal(t, 1, report.Summary.NewCases, "the others are rendered")
		assert.Contains(t, printed, want)
	}
	_, err := Run(t.Context(), catalogue(t, nil), []string{"seed/other"})
	require.ErrorContains(t, err, "want one of seed/app, seed/bare")
	_, err = Run(t.Context(), fstest.MapFS{}, nil)
	require.ErrorContains(t, err, "the catalogue has no components")
}

func TestFailedCasesKeepTheirRecord(t *testing.T) {
	c := withRecord(t, catalogue(t, map[string]string{"default": caseText}))
	c["seed/app/component.cue"] = &fstest.MapFile{Data: []byte(strings.Replace(seedComponent, "seed.spec.provider.region", "seed.spec.nothing.there", 1))}
	report, _ := runAll(t, c, "seed/app")
	assert.Equal(t, 1, report.Summary.FailedCases)
	assert.Len(t, report.Files, 2)
	assert.Empty(t, report.Stale)
}
