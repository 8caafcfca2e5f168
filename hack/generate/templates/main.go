// SPDX-License-Identifier: Apache-2.0

// Command templates removes required fields from the definitions of Shoot templates. A template may
// be incomplete, as upstream's own examples are; the Shoot made from it is checked. A marker cannot
// do this: the spec of the template has the Go type of the Shoot's.
//
// generate.sh runs it after controller-gen, as `go run ./hack/generate/templates FOLDER`.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: templates FOLDER")
		os.Exit(2)
	}
	if err := relaxShootTemplate(filepath.Join(os.Args[1], "seedmanagement.gardener.cloud_managedseedsets.yaml")); err != nil {
		fmt.Fprintln(os.Stderr, "templates:", err)
		os.Exit(1)
	}
}

func relaxShootTemplate(file string) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("reading a definition: %w", err)
	}
	var object map[string]any
	if err := yaml.Unmarshal(data, &object); err != nil {
		return fmt.Errorf("parsing %s: %w", file, err)
	}
	versions, err := lookup[[]any](object, "spec", "versions")
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	for _, version := range versions {
		template, err := lookup[map[string]any](version, "schema", "openAPIV3Schema", "properties", "spec", "properties", "shootTemplate", "properties", "spec")
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		makeOptional(template)
	}
	if data, err = yaml.Marshal(object); err != nil {
		return fmt.Errorf("writing %s: %w", file, err)
	}
	if err := yaml.UnmarshalStrict(data, &apiextensionsv1.CustomResourceDefinition{}); err != nil {
		return fmt.Errorf("reading %s again: %w", file, err)
	}
	if err := os.WriteFile(file, append([]byte("---\n"), data...), 0o644); err != nil {
		return fmt.Errorf("writing a definition: %w", err)
	}
	return nil
}

func lookup[T any](value any, path ...string) (T, error) {
	for i, name := range path {
		object, _ := value.(map[string]any)
		if value = object[name]; value == nil {
			var none T
			return none, fmt.Errorf("no field %q at %v", name, path[:i])
		}
	}
	found, ok := value.(T)
	if !ok {
		return found, fmt.Errorf("%v is %T", path, value)
	}
	return found, nil
}

// makeOptional removes `required` from a schema, at all depths, except for the keys that identify
// items of lists: without them the definition is not valid.
func makeOptional(schema any) {
	s, ok := schema.(map[string]any)
	if !ok {
		return
	}
	delete(s, "required")
	if properties, ok := s["properties"].(map[string]any); ok {
		for _, child := range properties {
			makeOptional(child)
		}
	}
	makeOptional(s["additionalProperties"])
	makeOptional(s["items"])
	if items, ok := s["items"].(map[string]any); ok && s["x-kubernetes-list-map-keys"] != nil {
		items["required"] = s["x-kubernetes-list-map-keys"]
	}
}
