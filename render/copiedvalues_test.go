// SPDX-License-Identifier: Apache-2.0

package render

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const copyOfCA = `cue: [{apiVersion: "v1", kind: "Secret", metadata: {name: "copy", namespace: "elsewhere", annotations: "secrets.pergola.dev/values-from": "{\"cacert\":\"\(facts.secrets.ca.bundle)/bundle.crt\"}"}}]`

// TestCopiesOfSecrets: the render has the sources of values, which follow the facts. A bundle with
// a copy of an unknown Secret is unresolved.
func TestCopiesOfSecrets(t *testing.T) {
	files := map[string]string{"garden/app/component.cue": component(copyOfCA, `component: secrets: ca: {kind: "ca"}`)}
	in := gardenInput()
	before, err := Render(in, Options{Catalogue: smallCatalogue(t, files)})
	require.NoError(t, err)
	assert.Equal(t, []string{"secret ca"}, before.Bundles[0].Unresolved)

	in.Facts.Secrets = map[string]SecretFact{"ca": {Name: "ca-1", Bundle: "ca-bundle-1"}}
	first, err := Render(in, Options{Catalogue: smallCatalogue(t, files)})
	require.NoError(t, err)
	assert.Empty(t, first.Bundles[0].Unresolved)
	o := objectOf(t, first.Bundles, "Secret", "copy")
	values, err := CopiedValues(o.Unstructured)
	require.NoError(t, err)
	assert.Equal(t, map[string]CopiedValue{"cacert": {Name: "ca-bundle-1", Key: "bundle.crt"}}, values)
	assert.NotContains(t, o.Object, "data")

	in.Facts.Secrets["ca"] = SecretFact{Name: "ca-1", Bundle: "ca-bundle-2"}
	second, err := Render(in, Options{Catalogue: smallCatalogue(t, files)})
	require.NoError(t, err)
	assert.NotEqual(t, first.Bundles[0].Digest, second.Bundles[0].Digest, "another content has another name, and is another bundle")
}

// TestBrokenCopies: invalid copies are rejected with their position.
func TestBrokenCopies(t *testing.T) {
	for name, test := range map[string]struct{ kind, annotations, rest, want string }{
		"another kind":       {"ServiceAccount", `"secrets.pergola.dev/values-from": "{\"a\":\"b/c\"}"`, "", "only Secrets and ConfigMaps can copy values from others"},
		"no JSON":            {"Secret", `"secrets.pergola.dev/values-from": "a: b/c"`, "", "is not a JSON object of text values"},
		"nothing":            {"Secret", `"secrets.pergola.dev/values-from": "{}"`, "", "is not a JSON object of text values"},
		"no key":             {"Secret", `"secrets.pergola.dev/values-from": "{\"a\":\"b\"}"`, "", `a comes from "b", expected <Secret>/<key>`},
		"no key of a file":   {"ConfigMap", `"secrets.pergola.dev/values-from": "{\"a\":\"b\"}"`, "", `a comes from "b", expected <ConfigMap>/<key>`},
		"files of its own":   {"ConfigMap", `"secrets.pergola.dev/values-from": "{\"a\":\"b/c\"}"`, `, binaryData: b: "eA=="`, "so it cannot have binaryData"},
		"another namespace":  {"Secret", `"secrets.pergola.dev/values-from": "{\"a\":\"n/b/c\"}"`, "", `a comes from "n/b/c", expected <Secret>/<key>`},
		"values of its own":  {"Secret", `"secrets.pergola.dev/values-from": "{\"a\":\"b/c\"}"`, `, stringData: b: "x"`, "so it cannot have stringData"},
		"a hash in its name": {"Secret", `"secrets.pergola.dev/values-from": "{\"a\":\"b/c\"}", "render.pergola.dev/hashed-name": "true"`, "", "its name cannot contain a hash"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := renderSmall(t, map[string]string{"garden/app/component.cue": component(`cue: [{apiVersion: "v1", kind: "`+test.kind+`", metadata: {name: "s", annotations: {`+test.annotations+`}}`+test.rest+`}]`, "")})
			require.ErrorContains(t, err, test.want)
			assert.ErrorContains(t, err, "components/garden/app/component.cue:4")
		})
	}
}
