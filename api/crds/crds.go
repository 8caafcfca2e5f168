// SPDX-License-Identifier: Apache-2.0

package crds

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"strings"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

// FS holds one file per definition, named `<group>_<plural>.yaml`.
//
//go:embed *.yaml
var FS embed.FS

// All returns every definition, ordered by group and plural name. The caller owns the result.
func All() []*apiextensionsv1.CustomResourceDefinition {
	return readDefinitions("*.yaml")
}

// ByGroup returns the definitions of one API group, ordered by plural name, or none for a foreign
// group. The caller owns the result.
func ByGroup(group string) []*apiextensionsv1.CustomResourceDefinition {
	if group == "" || strings.ContainsAny(group, `*?[]\/_`) {
		return nil
	}
	return readDefinitions(group + "_*.yaml")
}

// Get returns the definition of a kind, or nil if there is none. The caller owns the result.
func Get(group, kind string) *apiextensionsv1.CustomResourceDefinition {
	if group == "" || strings.ContainsAny(group+kind, `*?[]\/_`) {
		return nil
	}
	// Our resource names are regular, so that reading one file is enough.
	resource, _ := meta.UnsafeGuessKindToResource(schema.GroupVersionKind{Group: group, Kind: kind})
	for _, crd := range readDefinitions(group + "_" + resource.Resource + ".yaml") {
		if crd.Spec.Names.Kind == kind {
			return crd
		}
	}
	return nil
}

// ToUnstructured returns a definition as it is applied: without its status, which belongs to the
// API server.
func ToUnstructured(crd *apiextensionsv1.CustomResourceDefinition) (*unstructured.Unstructured, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(crd)
	if err != nil {
		return nil, fmt.Errorf("CRD %s: %w", crd.Name, err)
	}
	delete(content, "status")
	out := &unstructured.Unstructured{Object: content}
	out.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
	return out, nil
}

// Manifests returns every definition of a group as YAML, by file name; all definitions if the group
// is empty.
func Manifests(group string) map[string][]byte {
	manifests := map[string][]byte{}
	for _, name := range names("*.yaml") {
		if group == "" || strings.HasPrefix(name, group+"_") {
			manifests[name] = fileContent(name)
		}
	}
	return manifests
}

func readDefinitions(pattern string) []*apiextensionsv1.CustomResourceDefinition {
	files := names(pattern)
	crds := make([]*apiextensionsv1.CustomResourceDefinition, 0, len(files))
	for _, name := range files {
		decoder := json.NewDecoder(bytes.NewReader(definitionJSON(name)))
		decoder.DisallowUnknownFields()
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := decoder.Decode(crd); err != nil {
			panic(fmt.Sprintf("embedded definition %s: %v", name, err))
		}
		crds = append(crds, crd)
	}
	return crds
}

// definitionJSONCache caches definitions as JSON, by file name. Parsing YAML takes most of the
// reading time, and a process reads many definitions twice.
var definitionJSONCache sync.Map

func definitionJSON(name string) []byte {
	if known, ok := definitionJSONCache.Load(name); ok {
		return known.([]byte)
	}
	data, err := yaml.YAMLToJSONStrict(fileContent(name))
	if err != nil {
		panic(fmt.Sprintf("embedded definition %s: %v", name, err))
	}
	definitionJSONCache.Store(name, data)
	return data
}

// fileContent panics on errors: the files are embedded and read by tests, so a failure is a broken
// build that no caller can handle.
func fileContent(name string) []byte {
	data, err := FS.ReadFile(name)
	if err != nil {
		panic(fmt.Sprintf("embedded definition %s: %v", name, err))
	}
	return data
}

func names(pattern string) []string {
	files, err := fs.Glob(FS, pattern)
	if err != nil {
		panic(fmt.Sprintf("pattern %q: %v", pattern, err))
	}
	return files
}
