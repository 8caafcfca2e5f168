// SPDX-License-Identifier: Apache-2.0

package landscapes

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pergola-dev/pergola/schemas"
	"github.com/pergola-dev/pergola/schemas/report"
)

const leakLandscape = "apiVersion: landscape.pergola.dev/v1alpha1\nkind: Landscape\nmetadata: {name: x}\nspec: %s\n"

// TestCUEErrorsQuoteNoValues: CUE's own messages do, and the value may be part of a Secret.
func TestCUEErrorsQuoteNoValues(t *testing.T) {
	for name, constraint := range map[string]string{
		"type": `"hunter2SECRET" & int`, "other value": `"hunter2SECRET" & "other"`, "bound": `"hunter2SECRET" & =~"^x"`,
	} {
		t.Run(name, func(t *testing.T) {
			tree := fstest.MapFS{
				"landscape.yaml": {Data: []byte(fmt.Sprintf(leakLandscape, "{}"))},
				"a.cue":          {Data: []byte(`s: {apiVersion: "v1", kind: "Secret", metadata: name: "a", stringData: {a: ` + constraint + `}}`)},
			}
			_, violations, err := LoadFS(t.Context(), tree, ".", Options{})
			require.NoError(t, err)
			require.NotEmpty(t, violations)
			assert.NotContains(t, fmt.Sprint(violations), "hunter2SECRET")
			assert.Contains(t, violations[0].String(), "a.cue:1:")
		})
	}
}

// TestLayersOfAWrongTypeAreNotLost: without its layers a landscape would lose their objects.
func TestLayersOfAWrongTypeAreNotLost(t *testing.T) {
	for _, layers := range []string{"{layers: ../base}", "{layers: [5]}", "{layers: {a: ../base}}", "{layers: 5}"} {
		tree := fstest.MapFS{"live/landscape.yaml": {Data: []byte(fmt.Sprintf(leakLandscape, layers))}, "base/landscape.yaml": {Data: []byte(fmt.Sprintf(leakLandscape, "{}"))}}
		l, violations, err := LoadFS(t.Context(), tree, "live", Options{})
		require.NoError(t, err)
		found, err := l.Validate(t.Context(), schemas.Options{})
		require.NoError(t, err)
		assert.Contains(t, fmt.Sprint(append(violations, found...)), "spec.layers", layers)
	}
}

// TestErrorsAboutFilesQuoteNoSecrets: no message or displayed line repeats a value of a Secret, or
// a value whose name suggests a secret.
func TestErrorsAboutFilesQuoteNoSecrets(t *testing.T) {
	const secret, configMap = "apiVersion: v1\nkind: Secret\nmetadata: {name: a, namespace: garden}\n", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: garden}\n"
	for name, file := range map[string]string{
		"a tag":                     secret + "stringData: {password: !hunter2}\n",
		"a tag of its own line":     secret + "stringData:\n  a: !hunter2 x\n",
		"a tag beside a name":       configMap + "data: {password: !hunter2}\n",
		"behind quotes":             secret + "stringData:\n  value: \"hunter2\"!x\n",
		"behind quotes by a name":   configMap + "data:\n  password: \"hunter2\"!x\n",
		"behind quotes in no kind":  "a: 1\nsecret: \"hunter2\"!x\n",
		"an alias":                  secret + "stringData: {a: *hunter2}\n",
		"a field twice":             secret + "stringData: {hunter2: a, hunter2: b}\n",
		"an object":                 secret + "stringData: {a: {hunter2: 1}}\n",
		"a list":                    secret + "stringData: {a: [hunter2]}\n",
		"no base64":                 secret + "data: {a: hunter2!}\n",
		"a number":                  configMap + "data: {password: 72022227}\n",
		"a label":                   "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: garden, labels: {token: hunter2!}}\n",
		"a neighbour":               configMap + "data: {port: 8080, pw: hunter2}\n",
		"a neighbour in a Secret":   secret + "stringData: {port: 8080, a: hunter2}\n",
		"a comment":                 configMap + "data: {port: 8080} # pw hunter2\n",
		"a comment of a Secret":     secret + "stringData: {port: 8080} # hunter2\n",
		"a chart":                   "apiVersion: core.gardener.cloud/v1\nkind: ControllerDeployment\nmetadata: {name: a}\nhelm: {rawChart: hunter2!}\n",
		"a field that is not known": secret + "hunter2: x\nstringDatas: {a: hunter2}\n",
		"CUE: quotes forgotten":     `s: {apiVersion: "v1", kind: "Secret", metadata: name: "a", stringData: {password: hunter2}}`,
		"CUE: a part of a name":     `s: {apiVersion: "v1", kind: "Secret", metadata: name: "a", stringData: {a: x.hunter2}, x: {}}`,
		"CUE: by a name":            "s: {apiVersion: \"v1\", kind: \"ConfigMap\", metadata: name: \"a\"}\npassword: hunter2",
		"CUE: two words":            `s: {apiVersion: "v1", kind: "Secret", metadata: name: "a", stringData: {password: a hunter2}}`,
		"CUE: a number":             `s: {apiVersion: "v1", kind: "Secret", metadata: name: "a", stringData: {password: 1hunter2}}`,
	} {
		t.Run(name, func(t *testing.T) {
			at := "a.yaml"
			if strings.HasPrefix(name, "CUE") {
				at = "a.cue"
			}
			tree := fstest.MapFS{"landscape.yaml": {Data: []byte(fmt.Sprintf(leakLandscape, "{}"))}, at: {Data: []byte(file)}}
			l, violations, err := LoadFS(t.Context(), tree, ".", Options{})
			require.NoError(t, err)
			found, err := l.Validate(t.Context(), schemas.Options{})
			require.NoError(t, err)
			violations = append(violations, found...)
			require.NotEmpty(t, violations)
			var out bytes.Buffer
			require.NoError(t, report.Write(&out, violations, report.Options{ReadSource: tree.ReadFile}))
			t.Log(out.String())
			for _, secret := range []string{"hunter2", "72022227"} {
				assert.NotContains(t, out.String(), secret)
			}
		})
	}
}
