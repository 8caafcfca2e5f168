// SPDX-License-Identifier: Apache-2.0

package render

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pergola-dev/pergola/schemas/fieldpath"
)

// Helpers that find objects and values of references.

func objectsNamed(among []Object, kind, name, namespace string) []Object {
	var out []Object
	for _, o := range among {
		if o.GetKind() == kind && o.GetName() == name && isSameNamespace(o.GetNamespace(), namespace) {
			out = append(out, o)
		}
	}
	return out
}

func isSameNamespace(a, b string) bool { return a == "" || b == "" || a == b }

// podsWithLabels are the pod templates with the given labels.
func podsWithLabels(among []Object, namespace string, labels map[string]string) []map[string]any {
	var out []map[string]any
	for _, o := range among {
		for _, template := range podTemplates(o.Unstructured) {
			if isSameNamespace(o.GetNamespace(), namespace) && hasLabels(labelsIn(valueIn(template, "metadata", "labels")), labels) {
				out = append(out, template)
			}
		}
	}
	return out
}

// servicesWithLabels are the Services with the given labels.
func servicesWithLabels(among []Object, namespace string, labels map[string]string) []map[string]any {
	var out []map[string]any
	for _, o := range among {
		if o.GetKind() == "Service" && isSameNamespace(o.GetNamespace(), namespace) && hasLabels(o.GetLabels(), labels) {
			out = append(out, o.Object)
		}
	}
	return out
}

func hasLabels(labels, wanted map[string]string) bool {
	for key, value := range wanted {
		if labels[key] != value {
			return false
		}
	}
	return true
}

func textPath(path fieldpath.Path) []string {
	out := make([]string, len(path))
	for i, step := range path {
		out[i] = fieldpath.StepName(step)
	}
	return out
}

func valueIn(object map[string]any, path ...string) any {
	value, _, _ := unstructured.NestedFieldNoCopy(object, path...)
	return value
}

func textAt(object map[string]any, path ...string) string {
	text, _ := valueIn(object, path...).(string)
	return text
}

func labelsIn(value any) map[string]string {
	object, _ := value.(map[string]any)
	out := make(map[string]string, len(object))
	for key, v := range object {
		if text, ok := v.(string); ok {
			out[key] = text
		}
	}
	return out
}
