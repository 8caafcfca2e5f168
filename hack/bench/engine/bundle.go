// SPDX-License-Identifier: Apache-2.0

package main

import (
	_ "embed"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

// bundleNamespace is the namespace of the bundles and of the objects that declare them.
const bundleNamespace = "bundles"

// initialValue is the value of every bundle until it is changed.
const initialValue = "as-declared"

// bundleTemplate is one bundle. Bundles differ in ${NAME} and ${VALUE}, as Flux substitutes
// variables.
//
//go:embed bundle.yaml
var bundleTemplate string

func bundleName(i int) string { return fmt.Sprintf("b%04d", i) }

// bundleManifest returns the manifest of a bundle.
func bundleManifest(i int, value string) string {
	return strings.NewReplacer("${NAME}", bundleName(i), "${VALUE}", value).Replace(bundleTemplate)
}

func bundleObjects(i int, value string) ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured
	for text := range strings.SplitSeq(bundleManifest(i, value), "\n---\n") {
		o, err := parseObject(text)
		if err != nil {
			return nil, err
		}
		out = append(out, o)
	}
	return out, nil
}

func parseObject(text string) (*unstructured.Unstructured, error) {
	raw, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		return nil, err
	}
	o := &unstructured.Unstructured{}
	return o, o.UnmarshalJSON(raw)
}

// resourcesByKind returns the resources that the benchmark uses, by kind.
func resourcesByKind() map[string]schema.GroupVersionResource {
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
