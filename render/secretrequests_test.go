// SPDX-License-Identifier: Apache-2.0

package render

import (
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pergola-dev/pergola/components"
)

// TestExpectationsChangeNothing: no, right, wrong, or another owner's expectations give the same
// render.
func TestExpectationsChangeNothing(t *testing.T) {
	l := localLandscape(t)
	render := func() []Bundle {
		bundles, err := All(l, components.FS, nil)
		require.NoError(t, err)
		return bundles
	}
	expectedRequests.clear()
	want := render()
	assert.Equal(t, want, render(), "with what was learned")
	for dir := range expectedRequests.byDir {
		expectedRequests.set(dir, []string{"ca", "nobody-has-this"})
	}
	assert.Equal(t, want, render(), "with what is wrong")
	names, known := expectedRequests.get("shoot/kube-apiserver")
	assert.True(t, known)
	assert.Contains(t, names, "ca-etcd", "and corrected then")
}

// TestExpectationsOfAComponentThatDependsOnItsFacts: the first pass determines the requests even if
// facts would add some.
func TestExpectationsOfAComponentThatDependsOnItsFacts(t *testing.T) {
	catalogue := fstest.MapFS{}
	for name, text := range map[string]string{
		"component.cue": `package component

component: {
	secrets: a: {kind: "ca"}
	if facts.secrets.a != _|_ {secrets: b: {kind: "ca"}}
	bundles: x: {cluster: "seed", source: cue: [{apiVersion: "v1", kind: "ConfigMap", metadata: {name: "c", namespace: "n"}, data: names: "\(len(facts.secrets))"}]}
}
`} {
		catalogue["seed/odd/"+name] = &fstest.MapFile{Data: []byte(text)}
	}
	for _, name := range []string{"inputs.cue", "cue.mod/module.cue"} {
		data, err := components.FS.ReadFile(name)
		require.NoError(t, err)
		catalogue[name] = &fstest.MapFile{Data: data}
	}
	in := Input{Owner: Owner{Kind: "seed", Name: "s", ControlPlaneNamespace: "garden"}, Objects: map[string]map[string]any{"seed": {}}}
	expectedRequests.clear()
	for range 3 {
		c, err := newEvaluator(catalogue, "seed/odd").evaluateComponent("seed/odd", &in, nil)
		require.NoError(t, err)
		assert.Equal(t, []string{"a"}, c.SecretRequests())
		bundles, err := c.render(in, Options{Catalogue: catalogue})
		require.NoError(t, err)
		assert.Equal(t, "1", bundles[0].Objects[0].Object["data"].(map[string]any)["names"])
	}
}

// TestRenderedComponentsHoldNoValues: retained values would need gigabytes for many Shoots.
func TestRenderedComponentsHoldNoValues(t *testing.T) {
	inputs, err := Owners(localLandscape(t))
	require.NoError(t, err)
	results, errs := renderOwners(inputs, Options{Catalogue: components.FS})
	for i, result := range results {
		require.NoError(t, errs[i])
		for _, c := range result.Components {
			assert.False(t, c.value.Exists(), c.Path)
			assert.Empty(t, c.bundles, c.Path)
		}
	}
}
