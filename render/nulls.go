// SPDX-License-Identifier: Apache-2.0

package render

import (
	"reflect"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// removeNulls removes nulls from a declaration of the given type: the API treats them as absent.
// In free-form parts such as providerConfig, null is a value with a meaning for their reader. It
// changes value in place.
func removeNulls(t reflect.Type, value any) any {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if freeFormTypes[t] {
		return value
	}
	switch v := value.(type) {
	case map[string]any:
		switch t.Kind() {
		case reflect.Struct:
			removeFieldNulls(t, v)
		case reflect.Map:
			removeEntryNulls(v, func(string) reflect.Type { return t.Elem() })
		}
	case []any:
		if t.Kind() == reflect.Slice {
			for i := range v {
				v[i] = removeNulls(t.Elem(), v[i])
			}
		}
	}
	return value
}

// freeFormTypes are the types of parts that the API does not interpret.
var freeFormTypes = map[reflect.Type]bool{
	reflect.TypeFor[runtime.RawExtension](): true,
	reflect.TypeFor[apiextensionsv1.JSON](): true,
}

func removeFieldNulls(t reflect.Type, object map[string]any) {
	types := map[string]reflect.Type{}
	for i := range t.NumField() {
		field := t.Field(i)
		switch name, _, _ := strings.Cut(field.Tag.Get("json"), ","); {
		case name == "" && field.Anonymous:
			removeNulls(field.Type, object)
		case name != "" && name != "-":
			types[name] = field.Type
		}
	}
	removeEntryNulls(object, func(name string) reflect.Type { return types[name] })
}

// removeEntryNulls skips entries of unknown type.
func removeEntryNulls(object map[string]any, typeOf func(name string) reflect.Type) {
	for name, value := range object {
		switch t := typeOf(name); {
		case t == nil:
		case value == nil:
			delete(object, name)
		default:
			object[name] = removeNulls(t, value)
		}
	}
}
