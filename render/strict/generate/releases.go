// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
)

// fieldsOf are the kinds and fields of the objects of a release, as "type<TAB>field". For a kind
// the field is empty.
func fieldsOf(folder string) (map[string]bool, error) {
	files, err := filepath.Glob(filepath.Join(folder, "*.json"))
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("%s holds no objects", folder)
	}
	seen := map[string]bool{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		var object map[string]any
		if err := json.Unmarshal(text, &object); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		version, _ := object["apiVersion"].(string)
		kind, _ := object["kind"].(string)
		gv, err := schema.ParseGroupVersion(version)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		typed, err := scheme.Scheme.New(gv.WithKind(kind))
		if err != nil {
			continue // the newest release removed it
		}
		t := reflect.TypeOf(typed).Elem()
		if _, declared := t.FieldByName("ObjectMeta"); !declared {
			continue // options of requests, reviews and lists are not rendered
		}
		seen[typeName(t)+"\t"] = true
		collectFields(t, object, seen)
	}
	return seen, nil
}

func typeName(t reflect.Type) string { return t.PkgPath() + "." + t.Name() }

// collectFields records the fields of a value by type, recursively.
func collectFields(t reflect.Type, value any, seen map[string]bool) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch v := value.(type) {
	case map[string]any:
		if t.Kind() == reflect.Map {
			for _, inner := range v {
				collectFields(t.Elem(), inner, seen)
			}
		}
		if t.Kind() != reflect.Struct {
			return
		}
		for i := range t.NumField() {
			f := t.Field(i)
			name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
			if name == "" && (f.Anonymous || strings.Contains(options, "inline")) {
				collectFields(f.Type, v, seen)
			} else if inner, ok := v[name]; ok {
				if isKubernetesType(t) {
					seen[typeName(t)+"\t"+name] = true
				}
				collectFields(f.Type, inner, seen)
			}
		}
	case []any:
		if t.Kind() == reflect.Slice {
			for _, item := range v {
				collectFields(t.Elem(), item, seen)
			}
		}
	}
}

// isKubernetesType excludes types with their own encoding, such as quantities.
func isKubernetesType(t reflect.Type) bool { return strings.HasPrefix(t.PkgPath(), "k8s.io/") }
