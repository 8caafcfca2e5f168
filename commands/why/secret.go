// SPDX-License-Identifier: Apache-2.0

package why

import (
	"encoding/base64"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// In Git the values of a Secret may be plain text in stringData. The API server has them only
// encoded in data.
const (
	fieldData       = "data"
	fieldStringData = "stringData"
)

func isSecret(o *unstructured.Unstructured) bool {
	return o.GetKind() == "Secret" && o.GetAPIVersion() == "v1"
}

// cutSecretValuesPath reports whether a path is at or below the values of a Secret, and returns the
// rest.
func cutSecretValuesPath(path string) (rest string, ok bool) {
	word, rest := firstWord(path)
	return rest, !strings.HasPrefix(path, "[") && (word == fieldData || word == fieldStringData)
}

// gitPath returns the path in Git. Values of a Secret are found in either field; stringData takes
// precedence, as in the API server.
func gitPath(m objectMatch) string {
	rest, ok := cutSecretValuesPath(m.path)
	if !ok || !isSecret(m.object) {
		return m.path
	}
	if rest == "" {
		if _, _, err := followPath(m.object.Object, m.path); err == nil {
			return m.path
		}
	}
	for _, field := range []string{fieldStringData, fieldData} {
		if _, _, err := followPath(m.object.Object, field+rest); err == nil {
			return field + rest
		}
	}
	return m.path
}

// storedForm converts a question about a Secret, and Git's value, to the form in a cluster.
func storedForm(m objectMatch, list steps, value any) (objectMatch, steps, any) {
	rest, ok := cutSecretValuesPath(m.path)
	if !ok || !isSecret(m.object) {
		return m, list, value
	}
	m.path = fieldData + rest
	if len(list) == 0 || list[0].key != fieldStringData {
		return m, list, value
	}
	list = slices.Clone(list)
	list[0].key = fieldData
	return m, list, encodedData(value)
}

// encodedData converts a value of stringData, or all values, to the form in data.
func encodedData(value any) any {
	switch v := value.(type) {
	case string:
		return base64.StdEncoding.EncodeToString([]byte(v))
	case map[string]any:
		out := maps.Clone(v)
		for key := range out {
			out[key] = encodedData(out[key])
		}
		return out
	}
	return value
}
