// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"encoding/base64"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/pergola-dev/pergola/change"
)

// TestKnownTextLeaks uses testdata/masking, written by someone who tried to evade the mask. Each
// text and object has hunter2, hunter3 or its base64, and no output may show it. Nothing in
// shown.yaml is hidden.

func TestKnownTextLeaks(t *testing.T) {
	files, err := filepath.Glob("testdata/masking/texts-*.txt")
	require.NoError(t, err)
	seen := 0
	for _, file := range files {
		raw, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, block := range strings.Split("\n"+string(raw), "\n=====")[1:] {
			name, text, _ := strings.Cut(block, "\n")
			name = strings.TrimSpace(name)
			if strings.HasPrefix(name, "b64 ") {
				text = base64.StdEncoding.EncodeToString([]byte(text))
			}
			seen++
			t.Run(name, func(t *testing.T) {
				require.True(t, hasSecretText(text), "the text has none")
				m := NewMasking([]byte("key"))
				masked := m.Text(text)
				assert.False(t, hasSecretText(masked), masked)
				assert.Equal(t, masked, m.Text(masked), "what is masked stays as it is")
				config := func(data map[string]any) map[string]any {
					return map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "c"}, "data": data}
				}
				for _, old := range []map[string]any{nil, config(map[string]any{}), config(map[string]any{"f": "a: 1\n"})} {
					requireNoSecret(t, Compare(old, config(map[string]any{"f": text})))
				}
			})
		}
	}
	assert.Greater(t, seen, 600)
}

func TestKnownObjectLeaks(t *testing.T) {
	for name, o := range maskingObjects(t, "objects.yaml") {
		t.Run(name, func(t *testing.T) {
			raw, err := json.Marshal(o)
			require.NoError(t, err)
			require.True(t, hasSecretText(string(raw)), "the object has none")
			requireNoSecret(t, Compare(nil, o))
			requireNoSecret(t, Compare(o, nil))
			text, err := yaml.Marshal(o)
			require.NoError(t, err)
			masked := Text(string(text))
			assert.False(t, hasSecretText(masked), masked)
			assert.False(t, hasSecretText(Text(string(raw))))
		})
	}
}

func TestObjectsWithoutSecretsAreNotMasked(t *testing.T) {
	for name, o := range maskingObjects(t, "shown.yaml") {
		t.Run(name, func(t *testing.T) {
			raw, err := json.Marshal(Compare(nil, o))
			require.NoError(t, err)
			assert.NotContains(t, string(raw), "hidden")
		})
	}
}

// TestReferencesAreCompared checks that a reviewer sees another name in a reference.
func TestReferencesAreCompared(t *testing.T) {
	seed := func(name string) map[string]any {
		return object(t, "{apiVersion: core.gardener.cloud/v1beta1, kind: Seed, metadata: {name: a}, spec: {backup: {credentialsRef: {apiVersion: v1, kind: Secret, name: "+name+", namespace: c}}}}").Object
	}
	assert.Equal(t, []change.Field{{Path: "spec.backup.credentialsRef.name", Old: "b", New: "d"}}, Compare(seed("b"), seed("d")))
	widgetOf := func(password string) map[string]any {
		return object(t, widgetManifest("{password: "+password+"}")).Object
	}
	assert.Equal(t, []change.Field{{Path: "spec.password.key", Old: "k", New: "l"}}, Compare(widgetOf("{name: a, key: k}"), widgetOf("{name: a, key: l}")))
	requireNoSecret(t, Compare(widgetOf("{name: a, key: k}"), widgetOf("{name: hunter2}")))
	requireNoSecret(t, Compare(widgetOf("hunter2"), widgetOf("{name: a, key: k}")))
}

func maskingObjects(t *testing.T, file string) map[string]map[string]any {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", "masking", file))
	require.NoError(t, err)
	out := map[string]map[string]any{}
	for _, document := range strings.Split(string(raw), "\n---\n") {
		name, _, _ := strings.Cut(strings.TrimPrefix(document, "# "), "\n")
		var o map[string]any
		require.NoError(t, yaml.Unmarshal([]byte(document), &o), name)
		require.NotEmpty(t, o, name)
		require.NotContains(t, out, name)
		out[name] = o
	}
	return out
}

func requireNoSecret(t *testing.T, fields []change.Field) {
	t.Helper()
	raw, err := json.Marshal(fields)
	require.NoError(t, err)
	text := string(raw) + printFields(t, fields)
	assert.False(t, hasSecretText(text), string(raw))
}

func hasSecretText(text string) bool {
	lower := strings.ToLower(text)
	return strings.Contains(lower, "hunter") || strings.Contains(lower, "ahvudgvy") || strings.Contains(strings.ToLower(decodedParts(text)), "hunter")
}
