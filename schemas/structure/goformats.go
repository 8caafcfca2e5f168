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

// addGoFormats marks the fields whose Go type is a duration: in a CRD they are plain text, but the API server of
// upstream, and every controller, decodes them into a duration and refuses anything else.
func addGoFormats(root *Node, gvk schema.GroupVersionKind, scheme *runtime.Scheme) error {
	object, err := scheme.New(gvk)
	if err != nil {
		return fmt.Errorf("making an empty %s: %w", gvk, err)
	}
	markDurations(root, reflect.TypeOf(object).Elem())
	return nil
}

func markDurations(n *Node, t reflect.Type) {
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
		markDurations(n.Items, t.Elem())
	case t.Kind() == reflect.Map && n.Additional != nil:
		markDurations(n.Additional, t.Elem())
	case t.Kind() == reflect.Struct && n.Properties != nil:
		for i := range t.NumField() {
			field := t.Field(i)
			name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
			if name == "" && (field.Anonymous || strings.Contains(options, "inline")) {
				markDurations(n, field.Type)
			} else if child, ok := n.Properties[name]; ok {
				markDurations(child, field.Type)
			}
		}
	}
}
