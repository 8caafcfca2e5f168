// SPDX-License-Identifier: Apache-2.0

package schemas

import (
	"encoding/base64"
	"maps"
	"reflect"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	resourcesv1alpha1 "github.com/pergola-dev/pergola/api/resources/v1alpha1"
)

// checkSecretUpdate checks changes of a Secret. Its messages never contain values.
func checkSecretUpdate(in ruleInput) []finding {
	if in.old == nil || isRecreatedOnUpdate(in.object) {
		return nil
	}
	r := &findingCollector{}
	if before := secretType(in.old); secretType(in.object) != before {
		r.add(fieldValue{path: "type"}, TypeInvalid, "must stay %s", before)
	}
	r.checkImmutable(in, func(object map[string]any) any { return storedSecretValues(object) }, "data")
	return r.findings
}

// isRecreatedOnUpdate reports whether an object asks to be recreated if it cannot be updated.
func isRecreatedOnUpdate(object map[string]any) bool {
	annotations, _, _ := unstructured.NestedStringMap(object, "metadata", "annotations")
	return annotations[resourcesv1alpha1.DeleteOnInvalidUpdate] == "true"
}

func secretType(object map[string]any) string {
	if typ, _ := object["type"].(string); typ != "" {
		return typ
	}
	return string(corev1.SecretTypeOpaque)
}

// checkInternalSecretUpdate checks that the values of an immutable InternalSecret do not change.
func checkInternalSecretUpdate(in ruleInput) []finding {
	if in.old == nil || in.old["immutable"] != true {
		return nil
	}
	r := &findingCollector{}
	if !reflect.DeepEqual(storedSecretValues(in.object), storedSecretValues(in.old)) {
		r.add(fieldValue{path: "data"}, TypeForbidden, "must not change: the object is immutable; create another one")
	}
	return r.findings
}

func checkConfigMapUpdate(in ruleInput) []finding {
	if in.old == nil || isRecreatedOnUpdate(in.object) {
		return nil
	}
	r := &findingCollector{}
	for _, field := range []string{"data", "binaryData"} {
		r.checkImmutable(in, func(object map[string]any) any { return removeEmptyValues(object[field]) }, field)
	}
	return r.findings
}

// checkImmutable checks that an immutable object stays immutable, and that its values do not
// change.
func (r *findingCollector) checkImmutable(in ruleInput, values func(map[string]any) any, field string) {
	if in.old["immutable"] != true {
		return
	}
	if in.object["immutable"] != true && field == "data" {
		r.add(fieldValue{path: "immutable"}, TypeForbidden, "must stay true: it cannot be undone")
	}
	if !reflect.DeepEqual(values(in.object), values(in.old)) {
		r.add(fieldValue{path: field}, TypeForbidden, "must not change: the object is immutable; create another one")
	}
}

// storedSecretValues returns the values of a Secret as stored: stringData wins over data.
func storedSecretValues(object map[string]any) map[string]string {
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
