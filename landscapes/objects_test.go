// SPDX-License-Identifier: Apache-2.0

package landscapes

import (
	"encoding/json"
	"fmt"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
)

func liveObject(apiVersion, kind, name string, fields map[string]any) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": kind, "metadata": map[string]any{"name": name, "namespace": "garden-a"}}}
	for field, value := range fields {
		o.Object[field] = value
	}
	return o
}

// TestFromObjects: live objects make the same landscape and findings as files with them.
func TestFromObjects(t *testing.T) {
	const core = "core.gardener.cloud/v1beta1"
	pem := "-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----\n"
	shoot := liveObject(core, "Shoot", "a", map[string]any{"spec": map[string]any{"maximum": int64(3), "share": 0.5, "on": "yes", "list": []any{"1", true, nil}}})
	tests := map[string]struct {
		objects []*unstructured.Unstructured
		want    []string // the findings
	}{
		"none": {},
		"several": {objects: []*unstructured.Unstructured{
			liveObject(core, "CloudProfile", "p", nil), shoot, liveObject("v1", "Secret", "s", map[string]any{"type": "Opaque"}),
		}},
		"Secret with values": {
			objects: []*unstructured.Unstructured{liveObject("v1", "Secret", "s", map[string]any{"data": map[string]any{"a": "YQ=="}})},
			want: []string{"warning: Secret garden-a/s: data: the values are readable for everyone who can read the repository; encrypt the file with SOPS, and renew the values " +
				"[landscape/secret-not-encrypted]"},
		},
		"private key": {
			objects: []*unstructured.Unstructured{liveObject(core, "Shoot", "a", map[string]any{"spec": map[string]any{"key": pem}})},
			want: []string{"warning: Shoot garden-a/a: spec.key: holds a private key, which everyone with the repository can use; move it to a Secret encrypted with " +
				"SOPS, and renew the leaked key [landscape/private-key]"},
		},
		"unknown kind": {
			objects: []*unstructured.Unstructured{shoot, liveObject(core, "Shot", "a", nil)},
			want:    []string{`error: Shot garden-a/a: kind: unknown kind "Shot"; did you mean Shoot? [landscape/kind]`},
		},
		"no kind": {
			objects: []*unstructured.Unstructured{{Object: map[string]any{"apiVersion": core, "metadata": map[string]any{"name": "a"}}}},
			want:    []string{"error: kind: must be set, as for every object of an API [landscape/kind]"},
		},
		"name that is no text": {
			objects: []*unstructured.Unstructured{{Object: map[string]any{"apiVersion": core, "kind": "Shoot", "metadata": map[string]any{"namespace": "garden-a", "name": int64(1)}}}},
			want:    []string{"error: Shoot garden-a/: metadata.name: must be text; put the value in quotes [landscape/name]"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			files := fstest.MapFS{"landscape.yaml": {Data: []byte("apiVersion: landscape.pergola.dev/v1alpha1\nkind: Landscape\nmetadata: {name: garden}\nspec: {gardenAPI: Aggregated}\n")}}
			for i, o := range test.objects {
				text, err := json.Marshal(o.Object)
				require.NoError(t, err)
				files[fmt.Sprintf("%d.json", i)] = &fstest.MapFile{Data: text}
			}
			read, wanted, err := LoadFS(t.Context(), files, ".", Options{})
			require.NoError(t, err)
			before := make([]*unstructured.Unstructured, len(test.objects))
			for i, o := range test.objects {
				before[i] = o.DeepCopy()
			}

			l, found := FromObjects(*read.Config, test.objects)
			assert.Equal(t, before, append([]*unstructured.Unstructured{}, test.objects...), "nothing is changed")
			assert.Equal(t, read.Config, l.Config)
			assert.Equal(t, read.Incomplete, l.Incomplete)
			assert.Equal(t, read.Layers, l.Layers)
			require.Len(t, l.Declarations, len(read.Declarations))
			for i := range l.Declarations {
				one, other := &l.Declarations[i], &read.Declarations[i]
				assert.Equal(t, other.Object(), one.Object())
				assert.Equal(t, identityOf(other), identityOf(one))
				assert.Equal(t, other.Secret, one.Secret)
				assert.Empty(t, one.PositionText())
				assert.True(t, one.HasSameContent(other))
			}
			for i := range wanted {
				wanted[i].File, wanted[i].Line, wanted[i].Column = "", 0, 0
			}
			assert.Equal(t, wanted, found)
			var texts []string
			for _, v := range found {
				texts = append(texts, v.String())
			}
			assert.Equal(t, test.want, texts)
		})
	}
}

// TestFromObjectsTwice: a duplicate object is refused, and the landscape has it once.
func TestFromObjectsTwice(t *testing.T) {
	shoot := liveObject("core.gardener.cloud/v1beta1", "Shoot", "a", nil)
	l, found := FromObjects(landscapev1alpha1.Landscape{}, []*unstructured.Unstructured{shoot, shoot.DeepCopy()})
	require.Len(t, found, 1)
	assert.Equal(t, "error: Shoot garden-a/a: metadata.name: the object is given twice; give it once [landscape/duplicate]", found[0].String())
	assert.Len(t, l.Declarations, 1)
}

// TestFromObjectsTyped: server metadata are retained, and a wrong type is an error with object and
// field.
func TestFromObjectsTyped(t *testing.T) {
	seed := liveObject("core.gardener.cloud/v1beta1", "Seed", "a", nil)
	seed.SetUID("1-2-3")
	bad := liveObject("core.gardener.cloud/v1beta1", "Seed", "b", map[string]any{"spec": "text"})
	l, found := FromObjects(landscapev1alpha1.Landscape{}, []*unstructured.Unstructured{seed, bad})
	require.Empty(t, found)
	seeds, err := l.Seeds()
	require.ErrorContains(t, err, "Seed garden-a/b: ")
	require.Len(t, seeds, 1)
	assert.EqualValues(t, "1-2-3", seeds[0].Object.UID)
}
