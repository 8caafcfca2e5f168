// SPDX-License-Identifier: Apache-2.0

package structure

import (
	"fmt"
	"reflect"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var durationType = reflect.TypeFor[metav1.Duration]()

// structTag is the key of struct tags with information that definitions lack.
const structTag = "pergola"

const (
	// tagSensitive marks a value that must not be quoted, nor its children.
	tagSensitive = "sensitive"
	// tagOtherVersion marks a field that is only served for objects written in another version.
	// Declarations of this version must not have it.
	tagOtherVersion = "otherVersion"
)

// addGoFormats adds information of the Go types: tags and durations. Durations are plain text in a
// CRD, but upstream's API server and all controllers reject other text.
func addGoFormats(root *Node, gvk schema.GroupVersionKind, scheme *runtime.Scheme) error {
	object, err := scheme.New(gvk)
	if err != nil {
		return fmt.Errorf("creating an empty %s: %w", gvk, err)
	}
	return addTypeInfo(root, reflect.TypeOf(object).Elem())
}

func addTypeInfo(n *Node, t reflect.Type) error {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case n == nil:
	case t == durationType:
		if n.Type == "string" {
			n.Format = formatDuration
		}
	case t.Kind() == reflect.Slice && n.Items != nil:
		return addTypeInfo(n.Items, t.Elem())
	case t.Kind() == reflect.Map && n.Additional != nil:
		return addTypeInfo(n.Additional, t.Elem())
	case t.Kind() == reflect.Struct && n.Properties != nil:
		return addFieldInfo(n, t)
	}
	return nil
}

func addFieldInfo(n *Node, t reflect.Type) error {
	for i := range t.NumField() {
		field := t.Field(i)
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name == "" && (field.Anonymous || strings.Contains(options, "inline")) {
			if err := addTypeInfo(n, field.Type); err != nil {
				return err
			}
			continue
		}
		child, ok := n.Properties[name]
		if !ok {
			continue
		}
		switch tag := field.Tag.Get(structTag); tag {
		case "":
		case tagSensitive:
			child.markSensitive()
		case tagOtherVersion:
			delete(n.Properties, name)
			continue
		default:
			return fmt.Errorf("the field %s of %s has the tag %s:%q, which is not known", field.Name, t, structTag, tag)
		}
		if err := addTypeInfo(child, field.Type); err != nil {
			return err
		}
	}
	return nil
}

// markSensitive marks a value and its children.
func (n *Node) markSensitive() {
	if n == nil {
		return
	}
	n.Sensitive = true
	n.Additional.markSensitive()
	n.Items.markSensitive()
	for _, child := range n.Properties {
		child.markSensitive()
	}
}
