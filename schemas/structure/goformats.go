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

// goTag is the key of the tags by which a Go type says what a definition cannot.
const goTag = "pergola"

const (
	// tagSensitive marks a value that must not be quoted, with everything in it.
	tagSensitive = "sensitive"
	// tagOtherVersion marks a field of another version of the kind, which is served where an object
	// was written in that version, and which no declaration of this version may have.
	tagOtherVersion = "otherVersion"
)

// addGoFormats adds what only the Go types say: the tags, and the fields whose type is a duration.
// In a CRD these are plain text, but the API server of upstream, and every controller, decodes them
// into a duration and refuses anything else.
func addGoFormats(root *Node, gvk schema.GroupVersionKind, scheme *runtime.Scheme) error {
	object, err := scheme.New(gvk)
	if err != nil {
		return fmt.Errorf("making an empty %s: %w", gvk, err)
	}
	return addFromGo(root, reflect.TypeOf(object).Elem())
}

func addFromGo(n *Node, t reflect.Type) error {
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
		return addFromGo(n.Items, t.Elem())
	case t.Kind() == reflect.Map && n.Additional != nil:
		return addFromGo(n.Additional, t.Elem())
	case t.Kind() == reflect.Struct && n.Properties != nil:
		return addFromFields(n, t)
	}
	return nil
}

func addFromFields(n *Node, t reflect.Type) error {
	for i := range t.NumField() {
		field := t.Field(i)
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name == "" && (field.Anonymous || strings.Contains(options, "inline")) {
			if err := addFromGo(n, field.Type); err != nil {
				return err
			}
			continue
		}
		child, ok := n.Properties[name]
		if !ok {
			continue
		}
		switch tag := field.Tag.Get(goTag); tag {
		case "":
		case tagSensitive:
			child.markSensitive()
		case tagOtherVersion:
			delete(n.Properties, name)
			continue
		default:
			return fmt.Errorf("the field %s of %s has the tag %s:%q, which is not known", field.Name, t, goTag, tag)
		}
		if err := addFromGo(child, field.Type); err != nil {
			return err
		}
	}
	return nil
}

// markSensitive marks a value and everything in it.
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
