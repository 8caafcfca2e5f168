// SPDX-License-Identifier: Apache-2.0

package render

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestUnresolvedSymbols: a symbolic value is found anywhere, also at the beginning of a
// line in a text, and as a key.
func TestUnresolvedSymbols(t *testing.T) {
	symbol := symbolicSecret("ca")
	for name, object := range map[string]map[string]any{
		"a value":             {"spec": map[string]any{"secretName": symbol.Name}},
		"in a list":           {"spec": map[string]any{"names": []any{"other", symbol.Name}}},
		"a line of a text":    {"data": map[string]any{"file": "a: b\n" + symbol.Name + "\n"}},
		"a key":               {"data": map[string]any{symbol.Name: "x"}},
		"the bundle of a CA":  {"webhooks": []any{map[string]any{"caBundle": symbol.CABundle}}},
		"between other words": {"args": []any{"--secret=garden/" + symbol.Name + ","}},
	} {
		text := searchText([]Object{{Unstructured: &unstructured.Unstructured{Object: object}}})
		assert.Equal(t, []string{"secret ca"}, unresolvedIn(text, []string{"ca", "client"}), name)
	}
	longer := searchText([]Object{{Unstructured: &unstructured.Unstructured{Object: map[string]any{"name": "x-" + symbol.Name}}}})
	assert.Empty(t, unresolvedIn(longer, []string{"ca"}), "the end of a longer name is another one")
}
