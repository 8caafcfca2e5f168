// SPDX-License-Identifier: Apache-2.0

package revisions

import (
	"encoding/base64"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pergola-dev/pergola/landscapes"
)

// DeclaredSecret returns the data of a Secret in namespace garden.
func DeclaredSecret(l *landscapes.Landscape, name string) (map[string][]byte, error) {
	d, ok := l.Find(schema.GroupKind{Kind: "Secret"}, "garden", name)
	if !ok {
		return nil, fmt.Errorf("the Secret %s with its pull credentials is not in this landscape", name)
	}
	if d.Secret == landscapes.SecretEncrypted {
		return nil, fmt.Errorf("the Secret %s with its pull credentials is encrypted, and no key opens it", name)
	}
	out := map[string][]byte{}
	for _, field := range []string{"data", "stringData"} {
		values, _, err := unstructured.NestedStringMap(d.Object().Object, field)
		if err != nil {
			return nil, fmt.Errorf("the Secret %s: %s is not a map of strings", name, field)
		}
		for key, text := range values {
			value := []byte(text)
			if field == "data" {
				if value, err = base64.StdEncoding.DecodeString(text); err != nil {
					return nil, fmt.Errorf("the Secret %s: %s[%s] is not base64", name, field, key)
				}
			}
			out[key] = value
		}
	}
	return out, nil
}
