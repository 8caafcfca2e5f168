// SPDX-License-Identifier: Apache-2.0

package jsonschema_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pergola-dev/pergola/api/crds"
	"github.com/pergola-dev/pergola/hack/bench/jsonschema"
)

// propertyAt returns the schema of a property by its path.
func propertyAt(t *testing.T, schema map[string]any, fields ...string) map[string]any {
	t.Helper()
	for _, field := range fields {
		if items, ok := schema["items"].(map[string]any); ok {
			schema = items
		}
		properties, ok := schema["properties"].(map[string]any)
		require.True(t, ok, field)
		schema, ok = properties[field].(map[string]any)
		require.True(t, ok, field)
	}
	return schema
}

func TestShootSchema(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, jsonschema.WriteAll(dir))
	data, err := os.ReadFile(filepath.Join(dir, "core.gardener.cloud_shoot_v1beta1.json"))
	require.NoError(t, err)
	var schema map[string]any
	require.NoError(t, json.Unmarshal(data, &schema))

	assert.NotContains(t, string(data), "x-kubernetes-")
	assert.Equal(t, []any{"Shoot"}, propertyAt(t, schema, "kind")["enum"])
	assert.Contains(t, schema["required"], "metadata")
	assert.Contains(t, propertyAt(t, schema, "metadata")["required"], "namespace")
	for _, fields := range [][]string{{}, {"metadata"}, {"spec"}, {"spec", "provider"}, {"spec", "kubernetes", "kubeAPIServer", "requests"}, {"status"}} {
		assert.Equal(t, false, propertyAt(t, schema, fields...)["additionalProperties"], "%v is closed", fields)
	}
	workers, ok := propertyAt(t, schema, "spec", "provider", "workers")["items"].(map[string]any)
	require.True(t, ok)
	assert.Equal(t, false, workers["additionalProperties"])
	assert.NotContains(t, propertyAt(t, schema, "spec", "provider", "infrastructureConfig"), "additionalProperties", "holds anything")
	assert.IsType(t, map[string]any{}, propertyAt(t, schema, "spec", "provider", "workers", "labels")["additionalProperties"], "a map")
	assert.Contains(t, propertyAt(t, schema, "spec", "provider", "workers", "maxSurge"), "anyOf", "number or text")
}

func TestWriteEveryKind(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, jsonschema.WriteAll(dir))
	files, err := os.ReadDir(dir)
	require.NoError(t, err)
	versions := 0
	for _, crd := range crds.All() {
		versions += len(crd.Spec.Versions)
	}
	assert.Len(t, files, versions)
}
