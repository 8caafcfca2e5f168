// SPDX-License-Identifier: Apache-2.0

package jsonschema

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/pergola-dev/pergola/api/crds"
)

// WriteAll writes a schema for each kind and version into a folder: GROUP_KIND_VERSION.json, the
// kind in lower case. kubeconform spells names in this way in the pattern of its -schema-location.
func WriteAll(dir string) error {
	for _, crd := range crds.All() {
		for _, version := range crd.Spec.Versions {
			schema, err := FromVersion(crd, version)
			if err != nil {
				return fmt.Errorf("%s, version %s: %w", crd.Name, version.Name, err)
			}
			data, err := json.Marshal(schema)
			if err != nil {
				return fmt.Errorf("%s, version %s: %w", crd.Name, version.Name, err)
			}
			name := strings.Join([]string{crd.Spec.Group, strings.ToLower(crd.Spec.Names.Kind), version.Name}, "_") + ".json"
			if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
				return err
			}
		}
	}
	return nil
}

// The FromVersion function returns the schema of one version of a kind, for draft 4 of JSON schema.
// Keywords are from OpenAPI 3.0; formats are checked. Fields that the API would prune are refused.
// CEL rules are left out: only the API server evaluates them.
func FromVersion(crd *apiextensionsv1.CustomResourceDefinition, version apiextensionsv1.CustomResourceDefinitionVersion) (map[string]any, error) {
	data, err := json.Marshal(version.Schema.OpenAPIV3Schema)
	if err != nil {
		return nil, err
	}
	var schema map[string]any
	if err := json.Unmarshal(data, &schema); err != nil {
		return nil, err
	}
	schema = closeSchema(schema)
	properties, ok := schema["properties"].(map[string]any)
	if !ok {
		return nil, errors.New("the definition has no properties")
	}
	properties["apiVersion"] = map[string]any{"type": "string", "enum": []any{crd.Spec.Group + "/" + version.Name}}
	properties["kind"] = map[string]any{"type": "string", "enum": []any{crd.Spec.Names.Kind}}
	properties["metadata"] = metadataSchema(crd.Spec.Scope == apiextensionsv1.NamespaceScoped)
	required, _ := schema["required"].([]any)
	schema["required"] = append([]any{"apiVersion", "kind", "metadata"}, required...)
	return schema, nil
}

// closeSchema returns a copy of a schema that refuses unknown fields at all depths.
func closeSchema(schema map[string]any) map[string]any {
	out := maps.Clone(schema)
	maps.DeleteFunc(out, func(key string, _ any) bool { return strings.HasPrefix(key, "x-kubernetes-") || key == "nullable" })
	open := schema["x-kubernetes-preserve-unknown-fields"] == true || schema["x-kubernetes-embedded-resource"] == true
	if properties, ok := schema["properties"].(map[string]any); ok {
		fields := make(map[string]any, len(properties))
		for name, below := range properties {
			fields[name] = below
			if s, ok := below.(map[string]any); ok {
				fields[name] = closeSchema(s)
			}
		}
		out["properties"] = fields
		if _, written := schema["additionalProperties"]; !written && !open {
			out["additionalProperties"] = false
		}
	}
	for _, key := range []string{"items", "additionalProperties"} {
		if below, ok := schema[key].(map[string]any); ok {
			out[key] = closeSchema(below)
		}
	}
	if schema["nullable"] == true {
		allowNull(out)
	}
	return out
}

// allowNull makes a schema accept null as well.
func allowNull(schema map[string]any) {
	if typ, ok := schema["type"].(string); ok {
		schema["type"] = []any{typ, "null"}
	}
	if values, ok := schema["enum"].([]any); ok && !slices.Contains(values, nil) {
		schema["enum"] = append(slices.Clone(values), nil)
	}
}

// metadataSchema returns the schema of metadata, which definitions do not have.
func metadataSchema(namespaced bool) map[string]any {
	text := map[string]any{"type": "string"}
	texts := map[string]any{"type": "object", "additionalProperties": text}
	name := map[string]any{"type": "string", "minLength": 1, "maxLength": 253}
	owner := map[string]any{
		"type": "object", "additionalProperties": false, "required": []any{"apiVersion", "kind", "name", "uid"},
		"properties": map[string]any{
			"apiVersion": text, "kind": text, "name": text, "uid": text,
			"controller": map[string]any{"type": "boolean"}, "blockOwnerDeletion": map[string]any{"type": "boolean"},
		},
	}
	properties := map[string]any{
		"name": name, "generateName": text, "labels": texts, "annotations": texts, "uid": text, "resourceVersion": text, "selfLink": text,
		"generation": map[string]any{"type": "integer"}, "deletionGracePeriodSeconds": map[string]any{"type": "integer"},
		"creationTimestamp": map[string]any{"type": []any{"string", "null"}, "format": "date-time"},
		"deletionTimestamp": map[string]any{"type": []any{"string", "null"}, "format": "date-time"},
		"finalizers":        map[string]any{"type": "array", "items": text}, "ownerReferences": map[string]any{"type": "array", "items": owner},
		"managedFields": map[string]any{"type": "array", "items": map[string]any{"type": "object"}},
	}
	required := []any{"name"}
	if namespaced {
		properties["namespace"] = name
		required = append(required, "namespace")
	}
	return map[string]any{"type": "object", "additionalProperties": false, "required": required, "properties": properties}
}
