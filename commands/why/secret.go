package why

import (
	"encoding/base64"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// The values of a Secret may stand in stringData in Git, as plain text. The API server has them in
// data alone, encoded.
const (
	fieldData       = "data"
	fieldStringData = "stringData"
)

func isSecret(o *unstructured.Unstructured) bool {
	return o.GetKind() == "Secret" && o.GetAPIVersion() == "v1"
}

// valuesBelow tells whether a path is that of the values of a Secret, or in them, and gives what
// follows.
func valuesBelow(path string) (rest string, ok bool) {
	word, rest := firstWord(path)
	return rest, !strings.HasPrefix(path, "[") && (word == fieldData || word == fieldStringData)
}

// inGit is the path by which Git has what was asked for. The values of a Secret are found under
// either name; where both have one, stringData counts, as for the API server.
func inGit(m match) string {
	rest, ok := valuesBelow(m.path)
	if !ok || !isSecret(m.object) {
		return m.path
	}
	if rest == "" {
		if _, _, err := locate(m.object.Object, m.path); err == nil {
			return m.path
		}
	}
	for _, field := range []string{fieldStringData, fieldData} {
		if _, _, err := locate(m.object.Object, field+rest); err == nil {
			return field + rest
		}
	}
	return m.path
}

// asStored is a question about a Secret, and what Git says, as a cluster has it.
func asStored(m match, list steps, value any) (match, steps, any) {
	rest, ok := valuesBelow(m.path)
	if !ok || !isSecret(m.object) {
		return m, list, value
	}
	m.path = fieldData + rest
	if len(list) == 0 || list[0].key != fieldStringData {
		return m, list, value
	}
	list = slices.Clone(list)
	list[0].key = fieldData
	return m, list, encoded(value)
}

// encoded is a value of stringData, or all of them, as it is in data.
func encoded(value any) any {
	switch v := value.(type) {
	case string:
		return base64.StdEncoding.EncodeToString([]byte(v))
	case map[string]any:
		out := maps.Clone(v)
		for key := range out {
			out[key] = encoded(out[key])
		}
		return out
	}
	return value
}
