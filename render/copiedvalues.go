// SPDX-License-Identifier: Apache-2.0

package render

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// MarkCopiedValues on a Secret without data names the sources of its values: a JSON object from its
// keys to "<Secret>/<key>". The sources are in the namespace of the owner's control plane. A render
// has no values; the applier fills them in and removes the mark. A generated Secret with other
// content has another name, and so changes the bundle. For a Secret of a user, the component adds
// an annotation with its checksum. On a ConfigMap without data the mark names ConfigMaps in the
// same way.
const MarkCopiedValues = "secrets.pergola.dev/values-from"

// CopiedValue is the source of a copied value: an object of the same kind, and its key.
type CopiedValue struct{ Name, Key string }

// CopiedValues returns the sources of the values of a Secret or ConfigMap, by its keys, or nil if
// it is not a copy.
func CopiedValues(obj *unstructured.Unstructured) (map[string]CopiedValue, error) {
	text, is := obj.GetAnnotations()[MarkCopiedValues]
	if !is {
		return nil, nil
	}
	if kind := obj.GetKind(); kind != "Secret" && kind != "ConfigMap" || obj.GroupVersionKind().Group != "" {
		return nil, fmt.Errorf("only Secrets and ConfigMaps can copy values from others (annotation %s)", MarkCopiedValues)
	}
	var sources map[string]string
	if err := json.Unmarshal([]byte(text), &sources); err != nil || len(sources) == 0 {
		return nil, fmt.Errorf("annotation %s is not a JSON object of text values", MarkCopiedValues)
	}
	out := make(map[string]CopiedValue, len(sources))
	for _, key := range sortedKeys(sources) {
		name, from, found := strings.Cut(sources[key], "/")
		if !found || name == "" || from == "" || strings.Contains(from, "/") {
			return nil, fmt.Errorf("annotation %s: %s comes from %q, expected <%s>/<key>", MarkCopiedValues, key, sources[key], obj.GetKind())
		}
		out[key] = CopiedValue{Name: name, Key: from}
	}
	return out, nil
}

// checkCopiedValues finds copies that can never be filled in.
func checkCopiedValues(obj *unstructured.Unstructured) error {
	values, err := CopiedValues(obj)
	if err != nil || values == nil {
		return err
	}
	for _, field := range []string{"data", "stringData", "binaryData"} {
		if _, has := obj.Object[field]; has {
			return fmt.Errorf("its values come from other %ss (annotation %s), so it cannot have %s", obj.GetKind(), MarkCopiedValues, field)
		}
	}
	if _, hashed := obj.GetAnnotations()[MarkHashedName]; hashed {
		return errors.New("its name cannot contain a hash, because a render does not know its values: use the name of their source instead")
	}
	return nil
}
