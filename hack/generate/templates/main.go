// Command templates takes the required fields out of the definitions below templates of Shoots: a
// template may be incomplete, as upstream's own examples are, and whoever makes a Shoot of it finds
// what is missing. There is no marker for it: the Go type of the template's spec is that of the
// Shoot.
//
// It is run by generate.sh, as `go run ./hack/generate/templates FOLDER`, after controller-gen.
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
	if err := run(filepath.Join(os.Args[1], "seedmanagement.gardener.cloud_managedseedsets.yaml")); err != nil {
		fmt.Fprintln(os.Stderr, "templates:", err)
		os.Exit(1)
	}
}

func run(file string) error {
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

// makeOptional removes `required` from a schema, at all depths, except the keys by which the items
// of lists are told apart: without them the definition is not valid.
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
