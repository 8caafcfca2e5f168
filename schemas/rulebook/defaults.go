package rulebook

import (
	"encoding/json"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
	operatorv1alpha1 "github.com/pergola-dev/pergola/api/operator/v1alpha1"
	"github.com/pergola-dev/pergola/schemas/fieldpath"
	"github.com/pergola-dev/pergola/schemas/structure"
)

// defaulting gives an empty object of a kind whose defaults are set by a function, and that function; nil for other kinds.
func defaulting(kind *structure.Kind) (object any, set func()) {
	switch gvk := kind.GVK; {
	case gvk == gardencorev1beta1.SchemeGroupVersion.WithKind("Shoot"):
		o := &gardencorev1beta1.Shoot{}
		return o, func() { gardencorev1beta1.SetDefaults_Shoot(o) }
	case gvk == gardencorev1beta1.SchemeGroupVersion.WithKind("Seed"):
		o := &gardencorev1beta1.Seed{}
		return o, func() { gardencorev1beta1.SetDefaults_Seed(o) }
	case gvk == gardencorev1beta1.SchemeGroupVersion.WithKind("CloudProfile"):
		o := &gardencorev1beta1.CloudProfile{}
		return o, func() { gardencorev1beta1.SetDefaults_CloudProfile(o) }
	case gvk == gardencorev1beta1.SchemeGroupVersion.WithKind("Project"):
		o := &gardencorev1beta1.Project{}
		return o, func() { gardencorev1beta1.SetDefaults_Project(o) }
	case gvk == operatorv1alpha1.SchemeGroupVersion.WithKind("Garden"):
		o := &operatorv1alpha1.Garden{}
		return o, func() { operatorv1alpha1.SetDefaults_Garden(o) }
	}
	return nil, nil
}

// filledIn gives the default of a field that is set by a function and not by the definition: what an object has there that
// was made of nothing but the fields around it. It is nil for none, and for one that depends on the name of the object.
func filledIn(kind *structure.Kind, path fieldpath.Path) (any, error) {
	first, err := filledInFor(kind, path, "one")
	if err != nil || first == nil {
		return nil, err
	}
	second, err := filledInFor(kind, path, "another")
	if err != nil || !reflect.DeepEqual(first, second) {
		return nil, err
	}
	return first, nil
}

func filledInFor(kind *structure.Kind, path fieldpath.Path, name string) (any, error) {
	object, set := defaulting(kind)
	if object == nil || len(path) == 0 {
		return nil, nil
	}
	around := map[string]any{"metadata": map[string]any{"name": name, "namespace": "garden-" + name}}
	if kind.GVK.Kind == "Shoot" { // most defaults are those of a Shoot with workers
		around["spec"] = map[string]any{"provider": map[string]any{"workers": []any{map[string]any{}}}}
	}
	surround(kind.Root, around, path)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(around, object); err != nil {
		return nil, nil // a value around the field is not made of fields
	}
	before, err := read(object, kind, path)
	if err != nil {
		return nil, err
	}
	set()
	after, err := read(object, kind, path)
	if err != nil || reflect.DeepEqual(before, after) {
		return nil, err
	}
	return after, nil
}

// surround puts what is around a field into an object.
func surround(node *structure.Node, object map[string]any, path fieldpath.Path) {
	if len(path) < 2 {
		return
	}
	name := fieldpath.Name(path[0])
	child := node.Properties[name]
	if child == nil || child.Held().Properties == nil {
		return
	}
	inner := map[string]any{}
	switch before := object[name].(type) {
	case map[string]any:
		inner = before
	case []any:
		inner, _ = before[0].(map[string]any)
	default:
		object[name] = inner
		if child.Items != nil {
			object[name] = []any{inner}
		}
	}
	surround(child.Held(), inner, path[1:])
}

// read gives the value of a field, nil where there is none.
func read(object any, kind *structure.Kind, path fieldpath.Path) (any, error) {
	data, err := json.Marshal(object)
	if err != nil {
		return nil, fmt.Errorf("reading the defaults of %s: %w", kind.GVK.Kind, err)
	}
	o := &unstructured.Unstructured{}
	if err := json.Unmarshal(data, &o.Object); err != nil {
		return nil, fmt.Errorf("reading the defaults of %s: %w", kind.GVK.Kind, err)
	}
	var value any = o.Object
	for _, step := range path {
		if list, ok := value.([]any); ok && len(list) > 0 {
			value = list[0]
		}
		fields, ok := value.(map[string]any)
		if !ok {
			return nil, nil
		}
		value = fields[fieldpath.Name(step)]
	}
	return value, nil
}
