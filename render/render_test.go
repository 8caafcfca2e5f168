// SPDX-License-Identifier: Apache-2.0

package render

import (
	"encoding/base64"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestSecretsOfComponents(t *testing.T) {
	secret := func(request string) string {
		return component("cue: ["+oneConfigMap+"]", "component: secrets: server: {"+request+"}\n")
	}
	files := map[string]string{
		"garden/a/component.cue": secret(`kind: "certificate", commonName: "x"`),
		"garden/b/component.cue": "package component\n\ncomponent: {enabled: false, secrets: server: {kind: \"other\"}}\n",
	}
	res, err := renderSmall(t, files)
	require.NoError(t, err)
	requests, err := res.Secrets()
	require.NoError(t, err)
	require.Len(t, requests, 1, "a disabled component asks for nothing")
	assert.JSONEq(t, `{"kind":"certificate","commonName":"x"}`, string(requests["server"]))

	files["garden/b/component.cue"] = "package component\n\ncomponent: {secrets: server: {kind: \"other\"}}\n"
	res, err = renderSmall(t, files)
	require.NoError(t, err)
	_, err = res.Secrets()
	require.EqualError(t, err, "components garden/a and garden/b ask for secret server in different ways")

	files["garden/b/component.cue"] = "package component\n\ncomponent: {secrets: server: {commonName: \"x\", kind: \"certificate\"}}\n"
	res, err = renderSmall(t, files)
	require.NoError(t, err)
	_, err = res.Secrets()
	require.NoError(t, err, "the order of fields is no difference")
}

func TestDuplicates(t *testing.T) {
	_, err := renderSmall(t, map[string]string{"garden/app/component.cue": component("cue: ["+oneConfigMap+",\n"+oneConfigMap+"]", "")})
	require.ErrorContains(t, err, "bundle app: ConfigMap a is rendered twice: components/garden/app/component.cue:4 and components/garden/app/component.cue:5")

	_, err = renderSmall(t, map[string]string{
		"garden/a/component.cue": component("cue: ["+oneConfigMap+"]", ""), "garden/b/component.cue": component("cue: ["+oneConfigMap+"]", ""),
	})
	require.ErrorContains(t, err, "bundle app is defined by component garden/a and by garden/b")

	named := func(name string) string {
		return strings.Replace(component("cue: ["+oneConfigMap+"]", ""), "bundles: app", "bundles: "+name, 1)
	}
	_, err = renderSmall(t, map[string]string{"garden/a/component.cue": named("one"), "garden/b/component.cue": named("two")})
	require.EqualError(t, err, "cluster runtime: ConfigMap garden/a is rendered by garden local, bundle one (components/garden/a/component.cue:4) and by garden local, bundle two (components/garden/b/component.cue:4): render it in only one of them")
}

// TestDuplicatesBetweenOwners: a Shoot must not bring objects of its Seed.
func TestDuplicatesBetweenOwners(t *testing.T) {
	bundle := func(owner Owner, name, apiVersion, object string) Bundle {
		o := Object{Unstructured: &unstructured.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": "X", "metadata": map[string]any{"name": object}}}, Origin: Origin{File: owner.Name + ".cue", Line: 3}}
		return Bundle{Name: name, Component: owner.Kind + "/c", Owner: owner, Cluster: ClusterSeed, Namespace: "ns", Objects: []Object{o}}
	}
	seed, a, b := Owner{Kind: "seed", Name: "eu"}, Owner{Kind: "shoot", Namespace: "n", Name: "a"}, Owner{Kind: "shoot", Namespace: "n", Name: "b"}
	clusterOf := ClusterNamer(map[string]string{"n/a": "eu", "n/b": "us"})
	bundles := []Bundle{bundle(seed, "one", "g/v1", "x"), bundle(a, "two", "g/v2", "x"), bundle(b, "two", "g/v1", "x"), bundle(a, "three", "h/v1", "x")}
	errs := duplicateObjectsAcrossBundles(bundles, clusterOf, false)
	require.Len(t, errs, 1)
	require.EqualError(t, errs[0], "cluster eu: X x is rendered by seed eu, bundle one (eu.cue:3) and by shoot n/a, bundle two (a.cue:3): render it in only one of them")
	assert.Empty(t, duplicateObjectsAcrossBundles(bundles, clusterOf, true))

	errs = duplicateBundleNames([]Bundle{bundle(seed, "one", "g/v1", "x"), bundle(a, "one", "g/v1", "y"), bundle(b, "one", "g/v1", "y")}, clusterOf)
	require.Len(t, errs, 1)
	require.EqualError(t, errs[0], "cluster eu: bundle one in namespace ns belongs to seed eu (component seed/c) and to shoot n/a (component shoot/c)")
	_, err := BundleFiles([]Bundle{bundle(seed, "one", "g/v1", "x"), bundle(a, "one", "g/v1", "y")}, clusterOf)
	require.ErrorContains(t, err, "another bundle is written to eu/ns/one, too")
}

func TestEnabled(t *testing.T) {
	files := map[string]string{
		"garden/on/component.cue":  component("cue: ["+oneConfigMap+"]", "component: enabled: garden.spec.replicas > 1\n"),
		"garden/off/component.cue": component("cue: ["+oneConfigMap+"]", "component: enabled: garden.spec.replicas > 2\n"),
	}
	catalogue := smallCatalogue(t, files)
	tests := map[string]struct {
		switches map[string]bool
		bundles  int
		err      string
	}{
		"as the declaration says":        {nil, 1, ""},
		"switched off":                   {map[string]bool{"garden/on": false}, 0, ""},
		"on that is on":                  {map[string]bool{"garden/on": true}, 1, ""},
		"on that the declaration denies": {map[string]bool{"garden/off": true}, 0, "garden local, component garden/off: the landscape enables it, but the declaration does not ask for it: change the declaration"},
		"off that is off":                {map[string]bool{"garden/off": false}, 1, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			res, err := Render(gardenInput(), Options{Catalogue: catalogue, Enabled: test.switches})
			if test.err != "" {
				require.EqualError(t, err, test.err)
				return
			}
			require.NoError(t, err)
			assert.Len(t, res.Bundles, test.bundles)
			assert.Len(t, res.Components, 2, "components that are off are listed as such")
		})
	}
}

func TestOnly(t *testing.T) {
	files := map[string]string{
		"garden/a/component.cue": component("cue: ["+oneConfigMap+"]", ""), "garden/b/component.cue": "package component\n\ncomponent: nonsense: true\n",
	}
	res, err := Render(gardenInput(), Options{Catalogue: smallCatalogue(t, files), OnlyComponents: []string{"garden/a"}})
	require.NoError(t, err)
	require.Len(t, res.Components, 1)
	assert.Equal(t, "garden/a", res.Components[0].Path)
}

// TestFacts: without a cluster, facts are symbolic and the bundle lists the missing ones. With the
// facts, equal inputs have another digest and nothing is unresolved.
func TestFacts(t *testing.T) {
	catalogue := smallCatalogue(t, map[string]string{"garden/app/component.cue": `package component

component: {
	secrets: {
		server: kind: "certificate"
		ca: kind:     "certificate"
		unused: kind: "certificate"
		"er": kind:    "certificate" // the end of another name
	}
	bundles: {
		app: {cluster: "runtime", direct: true, source: cue: [{apiVersion: "v1", kind: "ConfigMap", metadata: {name: "facts", namespace: "garden"}, data: {
			name: facts.secrets.server.name, sum: facts.secrets.server.checksum, bundle: facts.secrets.ca.bundle, ca: facts.secrets.ca.caBundle
		}}]}
		plain: {cluster: "runtime", direct: true, source: cue: [` + oneConfigMap + `]}
	}
}
`})
	render := func(facts Facts) []Bundle {
		in := gardenInput()
		in.Facts = facts
		res, err := Render(in, Options{Catalogue: catalogue})
		require.NoError(t, err)
		return res.Bundles
	}
	data := func(b Bundle) map[string]any { return b.Objects[0].Object["data"].(map[string]any) }

	symbolic := render(Facts{})
	assert.Equal(t, map[string]any{"name": "server-XXXXXXXX", "sum": "server-checksum-XXXXXXXX", "bundle": "ca-bundle-XXXXXXXX", "ca": base64.StdEncoding.EncodeToString([]byte("symbolic CA bundle of ca XXXXXXXX"))}, data(symbolic[0]))
	assert.Equal(t, []string{"secret ca", "secret server"}, symbolic[0].Unresolved)
	assert.NotEmpty(t, symbolic[0].Digest.Symbolic)
	assert.Empty(t, symbolic[0].Digest.Resolved)
	assert.Empty(t, symbolic[1].Unresolved, "it reads none")
	assert.NotEmpty(t, symbolic[1].Digest.Resolved)

	half := render(Facts{Secrets: map[string]SecretFact{"server": {Name: "server-1a2b3c4d", Checksum: "ff"}}})
	assert.Equal(t, []string{"secret ca"}, half[0].Unresolved)
	assert.NotEqual(t, symbolic[0].Digest.Symbolic, half[0].Digest.Symbolic)

	withoutCA := render(Facts{Secrets: map[string]SecretFact{"server": {Name: "server-1", Checksum: "f"}, "ca": {Name: "ca-1", Bundle: "ca-bundle-1"}}})
	assert.Equal(t, []string{"secret ca"}, withoutCA[0].Unresolved, "its certificates are not known")

	known := Facts{Secrets: map[string]SecretFact{
		"server": {Name: "server-1a2b3c4d", Checksum: "ff"}, "ca": {Name: "ca-00000000", Bundle: "ca-bundle-11111111", CABundle: "Zm9v"},
	}}
	resolved := render(known)
	assert.Equal(t, map[string]any{"name": "server-1a2b3c4d", "sum": "ff", "bundle": "ca-bundle-11111111", "ca": "Zm9v"}, data(resolved[0]))
	assert.Empty(t, resolved[0].Unresolved)
	assert.Empty(t, resolved[0].Digest.Symbolic)
	assert.Regexp(t, "^sha256:[0-9a-f]{64}$", resolved[0].Digest.Resolved)
	assert.Equal(t, resolved[0].Digest, render(known)[0].Digest)
	assert.Equal(t, symbolic[1].Digest, resolved[1].Digest, "what reads no fact does not change with them")
}

// TestDigestCoversDelivery: everything that is sent to a cluster changes the digest.
func TestDigestCoversDelivery(t *testing.T) {
	digests := map[string]string{}
	for _, settings := range []string{
		`cluster: "virtual"`, `cluster: "runtime"`, `cluster: "virtual", class: "seed"`, `cluster: "virtual", keepObjects: true`,
		`cluster: "virtual", labels: a: "b"`, `cluster: "virtual", injectLabels: a: "b"`, `cluster: "virtual", namespace: "other"`,
		`cluster: "virtual", direct: true`, `cluster: "virtual", condition: "X"`,
		`cluster: "virtual", servedBy: "hooks"`,
	} {
		d := managedBundle(t, settings).Digest.Resolved
		require.NotEmpty(t, d)
		assert.Empty(t, digests[d], "%s and %s have the same digest", settings, digests[d])
		digests[d] = settings
	}
}

func TestConditionOfABundle(t *testing.T) {
	res, err := renderSmall(t, map[string]string{"garden/app/component.cue": "package component\n\ncomponent: {\n\tcondition: \"Common\"\n\tbundles: {\n" +
		"\t\ta: {cluster: \"runtime\", source: cue: [" + oneConfigMap + "]}\n\t\tb: {cluster: \"runtime\", condition: \"Own\", source: cue: [" + strings.Replace(oneConfigMap, `name: "a"`, `name: "b"`, 1) + "]}\n\t}\n}\n"})
	require.NoError(t, err)
	assert.Equal(t, []string{"Common", "Own"}, []string{res.Bundles[0].Condition, res.Bundles[1].Condition})
}

func TestCatalogueErrors(t *testing.T) {
	_, err := Render(gardenInput(), Options{Catalogue: fstest.MapFS{"garden/x": {}}})
	require.ErrorContains(t, err, "read the image vector")
	_, err = Render(gardenInput(), Options{Catalogue: smallCatalogue(t, nil)})
	require.ErrorContains(t, err, "read the catalogue of garden")
	broken := smallCatalogue(t, map[string]string{"imagevector.yaml": "images:\n- nam: x\n", "garden/a/component.cue": ""})
	_, err = Render(gardenInput(), Options{Catalogue: broken})
	require.ErrorContains(t, err, `components/imagevector.yaml: `)
	in := gardenInput()
	in.TargetVersion = "newest"
	_, err = Render(in, Options{Catalogue: smallCatalogue(t, map[string]string{"garden/a/component.cue": ""})})
	require.ErrorContains(t, err, `version "newest" of Kubernetes`)
}
