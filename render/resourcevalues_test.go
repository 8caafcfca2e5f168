// SPDX-License-Identifier: Apache-2.0

package render

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	gardencorev1 "github.com/pergola-dev/pergola/api/core/v1"
)

func resourceReference(name, kind, of string) gardencorev1.NamedResourceReference {
	var r gardencorev1.NamedResourceReference
	r.Name, r.ResourceRef.APIVersion, r.ResourceRef.Kind, r.ResourceRef.Name = name, "v1", kind, of
	return r
}

// renderWithResources renders a chart with values from resources.
func renderWithResources(t *testing.T, template string, values map[string]any, checksums map[string]string) ([]Object, error) {
	t.Helper()
	const ref = "registry.example.org/charts/watcher:v1"
	src := helmSource{
		OCI: &gardencorev1.OCIRepository{Ref: ptr.To(ref)}, Release: "watcher", Namespace: "garden", Values: values,
		Resources: []gardencorev1.NamedResourceReference{resourceReference("account", "Secret", "login"), resourceReference("settings", "ConfigMap", "tuning")},
	}
	in := Input{Owner: Owner{Kind: "garden"}, Charts: map[string]Chart{ref: testChart(t, template)}, ResourceChecksums: checksums}
	return registryChartObjects(in, bundleSpec{Cluster: ClusterRuntime}, src, emptyCUE)
}

const fromResources = `
apiVersion: v1
kind: Secret
metadata: {name: s}
stringData:
  plain: "user={{ .Values.user }} password={{ .Values.password }}"
data:
  encoded: {{ printf "%s:%s" .Values.user .Values.password | b64enc }}
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: c
  annotations: {checksum: {{ printf "%s" .Values.password | sha256sum | quote }}}
data: {level: {{ .Values.level | quote }}, encoded: {{ .Values.level | b64enc | quote }}, own: x}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: untouched}
data: {encoded: aGVsbG8=}
`

// TestValuesFromResources: a render has tokens instead of values. Filling them in gives the same
// result as rendering with the values.
func TestValuesFromResources(t *testing.T) {
	values := map[string]any{"user": "{{ .resources.account.data.user }}", "password": "{{.resources.account.data.password}}", "level": "{{ .resources.settings.data.level }}"}
	objects, err := renderWithResources(t, fromResources, values, nil)
	require.NoError(t, err)
	require.Len(t, objects, 3)
	assert.Equal(t, "{{ .resources.account.data.user }}", values["user"], "the declaration stays as it is")

	known := map[FilledValue]string{{"Secret", "login", "user"}: "ada", {"Secret", "login", "password"}: "p\"w\n", {"ConfigMap", "tuning", "level"}: "debug"}
	filled := make([]*unstructured.Unstructured, len(objects))
	for i, o := range objects {
		tokens, err := FilledValues(o.Unstructured)
		require.NoError(t, err)
		with := map[string]string{}
		for token, from := range tokens {
			require.Contains(t, known, from)
			with[token] = known[from]
		}
		filled[i] = FillValues(o.Unstructured, with)
		assert.NotContains(t, filled[i].GetAnnotations(), MarkFilledValues)
	}
	at := func(i int, fields ...string) string {
		text, _, err := unstructured.NestedString(filled[i].Object, fields...)
		require.NoError(t, err)
		return text
	}
	assert.Equal(t, "user=ada password=p\"w\n", at(0, "stringData", "plain"))
	assert.Equal(t, base64.StdEncoding.EncodeToString([]byte("ada:p\"w\n")), at(0, "data", "encoded"))
	assert.Equal(t, "debug", at(1, "data", "level"))
	assert.Equal(t, base64.StdEncoding.EncodeToString([]byte("debug")), at(1, "data", "encoded"))
	assert.Equal(t, "aGVsbG8=", at(2, "data", "encoded"))
	tokens, err := FilledValues(objects[2].Unstructured)
	require.NoError(t, err)
	assert.Nil(t, tokens)

	// Other content changes the checksum of the configuration, so that pods restart.
	changed, err := renderWithResources(t, fromResources, values, map[string]string{"Secret/login": "another"})
	require.NoError(t, err)
	assert.NotEqual(t, objects[1].GetAnnotations()["checksum"], changed[1].GetAnnotations()["checksum"])
	again, err := renderWithResources(t, fromResources, values, map[string]string{"Secret/login": "another"})
	require.NoError(t, err)
	assert.Equal(t, changed[1].Object, again[1].Object)
}

func TestUnfillableValues(t *testing.T) {
	configMap := func(rest string) string { return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n" + rest }
	for name, test := range map[string]struct{ template, value, want string }{
		"of a Secret, in a ConfigMap":   {configMap("data: {a: {{ .Values.v }}}"), "{{ .resources.account.data.user }}", "ConfigMap c: data.a contains key user of Secret login, where everyone can read it"},
		"and in base64":                 {configMap("binaryData: {a: {{ .Values.v | b64enc }}}"), "{{ .resources.account.data.user }}", "binaryData.a contains key user of Secret login"},
		"in an annotation of a Secret":  {"apiVersion: v1\nkind: Secret\nmetadata: {name: s, annotations: {a: {{ .Values.v }}}}", "{{ .resources.account.data.user }}", "metadata.annotations.a contains key user of Secret login"},
		"in a name":                     {"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Values.v }}}", "{{ .resources.settings.data.x }}", "metadata.name"},
		"as the name of a field":        {configMap("data:\n  {{ .Values.v }}: a"), "{{ .resources.settings.data.x }}", "is computed from a value of spec.deployment.resources"},
		"changed":                       {configMap("data: {a: {{ .Values.v | upper }}}"), "{{ .resources.settings.data.x }}", "ConfigMap c: data.a is computed from a value of spec.deployment.resources: "},
		"within something encoded":      {"apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {a: '{\"auth\":\"{{ printf \"x:%s\" .Values.v | b64enc }}\"}'}", "{{ .resources.account.data.user }}", "Secret s: stringData.a is computed from a value of spec.deployment.resources: "},
		"a field of another name":       {configMap("data:\n  {{ .Values.v | sha256sum }}: a"), "{{ .resources.settings.data.x }}", "is computed from a value of spec.deployment.resources"},
		"of what is not named":          {configMap("data: {a: {{ .Values.v }}}"), "{{ .resources.other.data.x }}", `{{ .resources.other.data.x }} refers to the resource "other", which is not in spec.deployment.resources`},
		"a chart that asks for Secrets": {"apiVersion: v1\nkind: Secret\nmetadata: {name: s, annotations: {secrets.pergola.dev/values-from: '{\"a\":\"ca/ca.key\"}'}}", "x", "Secret s has the annotation secrets.pergola.dev/values-from, which is not allowed in a chart"},
		"and in another way":            {"apiVersion: v1\nkind: Secret\nmetadata: {name: s, annotations: {secrets.pergola.dev/values-in: '{\"a\":\"Secret/ca/ca.key\"}'}}", "x", "Secret s has the annotation secrets.pergola.dev/values-in, which is not allowed in a chart"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := renderWithResources(t, test.template, map[string]any{"v": test.value}, nil)
			require.ErrorContains(t, err, test.want)
		})
	}
}

func TestBrokenFilledValues(t *testing.T) {
	for text, want := range map[string]string{"x": "not a JSON object", "{}": "not a JSON object", `{"a":"Secret/b"}`: "expected <Secret or ConfigMap>/<name>/<key>", `{"a":"Pod/b/c"}`: "expected <Secret or ConfigMap>", `{"":"Secret/b/c"}`: "expected"} {
		o := &unstructured.Unstructured{Object: map[string]any{}}
		o.SetAnnotations(map[string]string{MarkFilledValues: text})
		_, err := FilledValues(o)
		require.ErrorContains(t, err, want, strings.Join([]string{"of", text}, " "))
	}
}
