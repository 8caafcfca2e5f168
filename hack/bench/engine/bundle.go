package main

import (
	_ "embed"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

// within is the namespace of the bundles and of the objects that declare them.
const within = "bundles"

// initial is the value of every bundle until it is changed.
const initial = "as-declared"

// template is one bundle. Bundles differ in ${NAME} and ${VALUE}, as Flux substitutes variables.
//
//go:embed bundle.yaml
var template string

func bundleName(i int) string { return fmt.Sprintf("b%04d", i) }

// manifest returns the manifest of a bundle.
func manifest(i int, value string) string {
	return strings.NewReplacer("${NAME}", bundleName(i), "${VALUE}", value).Replace(template)
}

func objects(i int, value string) ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured
	for text := range strings.SplitSeq(manifest(i, value), "\n---\n") {
		o, err := object(text)
		if err != nil {
			return nil, err
		}
		out = append(out, o)
	}
	return out, nil
}

func object(text string) (*unstructured.Unstructured, error) {
	raw, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		return nil, err
	}
	o := &unstructured.Unstructured{}
	return o, o.UnmarshalJSON(raw)
}

// kinds returns the resources that the benchmark uses, by kind.
func kinds() map[string]schema.GroupVersionResource {
	core := func(name string) schema.GroupVersionResource {
		return schema.GroupVersionResource{Version: "v1", Resource: name}
	}
	return map[string]schema.GroupVersionResource{
		"Namespace": core("namespaces"), "ConfigMap": core("configmaps"), "Secret": core("secrets"),
		"ServiceAccount": core("serviceaccounts"), "Service": core("services"),
		"Role":                     {Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "roles"},
		"CustomResourceDefinition": {Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"},
		"ManagedResource":          {Group: "resources.gardener.cloud", Version: "v1alpha1", Resource: "managedresources"},
		"Kustomization":            {Group: "kustomize.toolkit.fluxcd.io", Version: "v1", Resource: "kustomizations"},
		"GitRepository":            {Group: "source.toolkit.fluxcd.io", Version: "v1", Resource: "gitrepositories"},
	}
}
