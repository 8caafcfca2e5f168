// SPDX-License-Identifier: Apache-2.0

package structure

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// KindFromGoType derives the schema of a configuration from the Go type into which its process
// decodes it. The type defines fields and forms, but not which fields are required. open are paths
// with unchecked content.
func KindFromGoType(gvk schema.GroupVersionKind, t reflect.Type, open ...string) (*Kind, error) {
	root, err := nodeFromType(t, nil)
	if err != nil {
		return nil, fmt.Errorf("reading the schema of %s: %w", gvk, err)
	}
	for _, path := range open {
		n := root
		for name := range strings.SplitSeq(path, ".") {
			if n = n.Properties[name]; n == nil {
				return nil, fmt.Errorf("reading the schema of %s: there is no field %s", gvk, path)
			}
		}
		n.AllowsUnknownFields = true
	}
	return &Kind{GVK: gvk, Root: root}, nil
}

// jsonTypes are types whose JSON form differs from their Go fields.
var jsonTypes = map[reflect.Type]Node{
	durationType:                          {Type: "string", Format: formatDuration},
	reflect.TypeFor[metav1.Time]():        {Type: "string", Format: formatDateTime},
	reflect.TypeFor[resource.Quantity]():  {IntOrString: true, AllowsFraction: true},
	reflect.TypeFor[intstr.IntOrString](): {IntOrString: true},
}

func nodeFromType(t reflect.Type, within []reflect.Type) (*Node, error) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if n, ok := jsonTypes[t]; ok {
		return &n, nil
	}
	for _, outer := range within {
		if outer == t {
			return &Node{AllowsUnknownFields: true}, nil // a recursive type is expanded once
		}
	}
	within = append(within, t)
	if reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]()) {
		return &Node{AllowsUnknownFields: true}, nil // custom JSON form, such as RawExtension
	}
	var err error
	n := &Node{}
	switch t.Kind() {
	case reflect.Struct:
		n.Type, n.Properties = "object", map[string]*Node{}
		return n, addStructFields(n, t, within)
	case reflect.Map:
		n.Type = "object"
		n.Additional, err = nodeFromType(t.Elem(), within)
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			n.Type, n.Format = "string", formatByte
			return n, nil
		}
		n.Type = "array"
		n.Items, err = nodeFromType(t.Elem(), within)
	case reflect.String:
		n.Type = "string"
	case reflect.Bool:
		n.Type = "boolean"
	case reflect.Float32, reflect.Float64:
		n.Type = "number"
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64, reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		n.Type = "integer"
	case reflect.Interface:
		n.AllowsUnknownFields = true
	default:
		err = fmt.Errorf("%s has no form in JSON", t)
	}
	return n, err
}

func addStructFields(n *Node, t reflect.Type, within []reflect.Type) error {
	for i := range t.NumField() {
		field := t.Field(i)
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case name == "-" || !field.IsExported():
		case name == "" && (field.Anonymous || strings.Contains(options, "inline")):
			if err := addStructFields(n, field.Type, within); err != nil {
				return err
			}
		default:
			if name == "" {
				name = field.Name
			}
			child, err := nodeFromType(field.Type, within)
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			n.Properties[name] = child
		}
	}
	return nil
}
