// SPDX-License-Identifier: Apache-2.0

package render

import (
	"bytes"
	"encoding/base64"
	"regexp"
	"strings"
	"testing"

	"github.com/andybalholm/brotli"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func managedBundle(t *testing.T, settings string) Bundle {
	t.Helper()
	res, err := renderSmall(t, map[string]string{"garden/app/component.cue": "package component\n\ncomponent: bundles: app: {" + settings + ", source: cue: [" + oneConfigMap + "]}\n"})
	require.NoError(t, err)
	return res.Bundles[0]
}

func TestManagedResource(t *testing.T) {
	tests := map[string]struct {
		settings     string
		spec, labels map[string]any
	}{
		"for the virtual garden": {`cluster: "virtual"`,
			map[string]any{"keepObjects": false, "injectLabels": map[string]any{"shoot.gardener.cloud/no-cleanup": "true"}}, map[string]any{"origin": "gardener"}},
		"for the cluster it is in": {`cluster: "runtime", class: "seed"`, map[string]any{"keepObjects": false, "class": "seed"}, nil},
		"with everything": {`cluster: "virtual", keepObjects: true, labels: {a: "b"}, injectLabels: {c: "d"}`,
			map[string]any{"keepObjects": true, "injectLabels": map[string]any{"c": "d", "shoot.gardener.cloud/no-cleanup": "true"}}, map[string]any{"origin": "gardener", "a": "b"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			b := managedBundle(t, test.settings)
			mr, secret, err := ManagedResource(b)
			require.NoError(t, err)

			assert.Regexp(t, regexp.MustCompile(`^managedresource-app-[0-9a-f]{8}$`), secret.GetName())
			assert.Equal(t, "garden", secret.GetNamespace())
			assert.Equal(t, true, secret.Object["immutable"])
			assert.Equal(t, map[string]string{"resources.gardener.cloud/garbage-collectable-reference": "true"}, secret.GetLabels())

			assert.Equal(t, "resources.gardener.cloud/v1alpha1", mr.GetAPIVersion())
			assert.Equal(t, "app", mr.GetName())
			assert.Equal(t, "garden", mr.GetNamespace())
			key, value := ReferenceAnnotation("Secret", secret.GetName())
			assert.Equal(t, map[string]string{key: value}, mr.GetAnnotations())
			labels, _, _ := unstructured.NestedMap(mr.Object, "metadata", "labels")
			assert.Equal(t, test.labels, labels)
			test.spec["secretRefs"] = []any{map[string]any{"name": secret.GetName()}}
			assert.Equal(t, test.spec, mr.Object["spec"])

			again, sameSecret, err := ManagedResource(b)
			require.NoError(t, err)
			assert.Equal(t, []any{mr, secret}, []any{again, sameSecret})

			packed, err := base64.StdEncoding.DecodeString(secret.Object["data"].(map[string]any)[DataKey].(string))
			require.NoError(t, err)
			objects, problems := UnpackObjects(map[string][]byte{DataKey: packed})
			assert.Empty(t, problems)
			require.Len(t, objects, 1)
			assert.Equal(t, b.Objects[0].Object, objects[0].Object)
		})
	}
}

func TestManagedResourceIsNamedAfterItsContent(t *testing.T) {
	one, two := managedBundle(t, `cluster: "virtual"`), managedBundle(t, `cluster: "virtual"`)
	two.Objects[0].Object["data"] = map[string]any{"x": "z"}
	_, first, err := ManagedResource(one)
	require.NoError(t, err)
	_, second, err := ManagedResource(two)
	require.NoError(t, err)
	assert.NotEqual(t, first.GetName(), second.GetName())
}

func compress(t *testing.T, data []byte) []byte {
	t.Helper()
	out, err := compressManifest(data)
	require.NoError(t, err)
	return out
}

func TestUnpack(t *testing.T) {
	object := func(name string) string {
		return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + "}\n"
	}
	tests := map[string]struct {
		data     map[string][]byte
		want     []string
		problems []string
	}{
		"every key, compressed or not": {data: map[string][]byte{"b.yaml": []byte(object("b")), "a.yaml.br": compress(t, []byte(object("a")))}, want: []string{"a", "b"}},
		"several documents":            {data: map[string][]byte{"d": []byte("---\n" + object("a") + "---\r\n" + object("b") + "---\n# nothing\n---\n")}, want: []string{"a", "b"}},
		"broken beside good": {data: map[string][]byte{"d": []byte(object("a") + "---\na: [\n---\nkind: X\n---\n" + object("b"))}, want: []string{"a", "b"},
			problems: []string{"key d, document 2, line 5: not YAML of an object", "key d, document 3, line 7: an object needs apiVersion, metadata.name"}},
		"a list":             {data: map[string][]byte{"d": []byte("apiVersion: v1\nkind: List\nitems: []\n")}, problems: []string{"key d, document 1, line 1: a list is not an object: write each item as its own document"}},
		"broken compression": {data: map[string][]byte{"a.br": []byte("plain text"), "b": []byte(object("b"))}, want: []string{"b"}, problems: []string{"key a.br: decompress: "}},
		"nothing":            {data: nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			objects, problems := UnpackObjects(test.data)
			var got []string
			for _, o := range objects {
				got = append(got, o.GetName())
			}
			assert.Equal(t, test.want, got)
			require.Len(t, problems, len(test.problems))
			for i, p := range problems {
				assert.Contains(t, p.Error(), test.problems[i])
			}
		})
	}
}

// TestUnpackShowsNoContent: a data Secret may contain anything.
func TestUnpackShowsNoContent(t *testing.T) {
	_, problems := UnpackObjects(map[string][]byte{"d": []byte("password: hunter2\n\t- x\n")})
	require.Len(t, problems, 1)
	assert.NotContains(t, problems[0].Error(), "hunter2")
}

// TestUnpackIsBounded: a few kilobytes that expand beyond the limit are rejected.
func TestUnpackIsBounded(t *testing.T) {
	var bomb bytes.Buffer
	w := brotli.NewWriter(&bomb)
	chunk := []byte(strings.Repeat("#", 1<<20))
	for range MaxManifestSize>>20 + 1 {
		_, err := w.Write(chunk)
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	require.Less(t, bomb.Len(), 1<<20)
	objects, problems := UnpackObjects(map[string][]byte{"a.br": bomb.Bytes()})
	assert.Empty(t, objects)
	require.Len(t, problems, 1)
	assert.EqualError(t, problems[0], "key a.br: more than 64 MiB of manifests")
}

// TestKeepData: a Secret with equal manifests stays, whatever its compression.
func TestKeepData(t *testing.T) {
	b := Bundle{Name: "thing", Namespace: "garden", Objects: []Object{{Unstructured: &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "c", "namespace": "garden"}, "data": map[string]any{"a": "b"}}}}}}
	mr, secret, err := ManagedResource(b)
	require.NoError(t, err)
	plain := manifestOf(secret)
	require.NotEmpty(t, plain)
	var packed bytes.Buffer
	w := brotli.NewWriterLevel(&packed, brotli.BestSpeed)
	_, err = w.Write(plain)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	have := secret.DeepCopy()
	have.SetName("managedresource-thing-before")
	data := base64.StdEncoding.EncodeToString(packed.Bytes())
	require.NoError(t, unstructured.SetNestedField(have.Object, data, "data", DataKey))
	require.NotEqual(t, secret.Object["data"], have.Object["data"], "the test needs another compression")

	kept, err := ReuseDataSecret(mr, secret, have)
	require.NoError(t, err)
	assert.True(t, kept)
	assert.Equal(t, have.GetName(), secret.GetName())
	assert.Equal(t, have.Object["data"], secret.Object["data"])
	assert.Equal(t, []any{map[string]any{"name": have.GetName()}}, mr.Object["spec"].(map[string]any)["secretRefs"])
	key, value := ReferenceAnnotation("Secret", have.GetName())
	assert.Equal(t, map[string]string{key: value}, mr.GetAnnotations())

	b.Objects[0].Object["data"] = map[string]any{"a": "c"}
	mr, secret, err = ManagedResource(b)
	require.NoError(t, err)
	name := secret.GetName()
	kept, err = ReuseDataSecret(mr, secret, have)
	require.NoError(t, err)
	assert.False(t, kept)
	assert.Equal(t, name, secret.GetName())
}
