package schemas

import (
	"encoding/base64"
	"maps"
	"reflect"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	resourcesv1alpha1 "github.com/pergola-dev/pergola/api/resources/v1alpha1"
)

// secretStays checks changes of a Secret. Its messages never contain values.
func secretStays(in ruleInput) []finding {
	if in.old == nil || isMadeAnew(in.object) {
		return nil
	}
	r := &report{}
	if before := secretType(in.old); secretType(in.object) != before {
		r.add(tree{path: "type"}, TypeInvalid, "must stay %s", before)
	}
	r.immutable(in, func(object map[string]any) any { return secretValues(object) }, "data")
	return r.findings
}

// isMadeAnew reports whether an object asks to be recreated if it cannot be updated.
func isMadeAnew(object map[string]any) bool {
	annotations, _, _ := unstructured.NestedStringMap(object, "metadata", "annotations")
	return annotations[resourcesv1alpha1.DeleteOnInvalidUpdate] == "true"
}

func secretType(object map[string]any) string {
	if typ, _ := object["type"].(string); typ != "" {
		return typ
	}
	return string(corev1.SecretTypeOpaque)
}

// immutableData checks that the values of an immutable InternalSecret do not change.
func immutableData(in ruleInput) []finding {
	if in.old == nil || in.old["immutable"] != true {
		return nil
	}
	r := &report{}
	if !reflect.DeepEqual(secretValues(in.object), secretValues(in.old)) {
		r.add(tree{path: "data"}, TypeForbidden, "must not change: the object is immutable; make another one")
	}
	return r.findings
}

func configMapStays(in ruleInput) []finding {
	if in.old == nil || isMadeAnew(in.object) {
		return nil
	}
	r := &report{}
	for _, field := range []string{"data", "binaryData"} {
		r.immutable(in, func(object map[string]any) any { return compact(object[field]) }, field)
	}
	return r.findings
}

// immutable checks that an immutable object stays immutable, and that its values do not change.
func (r *report) immutable(in ruleInput, values func(map[string]any) any, field string) {
	if in.old["immutable"] != true {
		return
	}
	if in.object["immutable"] != true && field == "data" {
		r.add(tree{path: "immutable"}, TypeForbidden, "must stay true: it can never be taken back")
	}
	if !reflect.DeepEqual(values(in.object), values(in.old)) {
		r.add(tree{path: field}, TypeForbidden, "must not change: the object is immutable; make another one")
	}
}

// secretValues returns the values of a Secret as stored: stringData wins over data.
func secretValues(object map[string]any) map[string]string {
	result := map[string]string{}
	data, _ := object["data"].(map[string]any)
	for key, value := range data {
		text, _ := value.(string)
		if plain, err := base64.StdEncoding.DecodeString(text); err == nil {
			text = string(plain)
		}
		result[key] = text
	}
	plain, _ := object["stringData"].(map[string]any)
	for key := range maps.Keys(plain) {
		result[key], _ = plain[key].(string)
	}
	return result
}
