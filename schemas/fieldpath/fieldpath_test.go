// SPDX-License-Identifier: Apache-2.0

package fieldpath

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestParseAndString(t *testing.T) {
	tests := map[string]Path{
		"":                                      nil,
		"spec":                                  {"spec"},
		"spec.provider.workers[0].name":         {"spec", "provider", "workers", 0, "name"},
		"metadata.annotations[a.b/c]":           {"metadata", "annotations", Key("a.b/c")},
		"spec.runtimeConfig[apps/v1].x[12][13]": {"spec", "runtimeConfig", Key("apps/v1"), "x", 12, 13},
	}
	for text, path := range tests {
		assert.Equal(t, path, Parse(text), text)
		assert.Equal(t, text, path.String())
	}
	assert.Equal(t, Path{"a", Key("b")}, Parse("a[b"), "an unfinished bracket ends with the text")
}

func TestAppendDoesNotModifyPath(t *testing.T) {
	base := make(Path, 1, 8)
	base[0] = "spec"
	first, second := base.Append("a"), base.Append("b")
	assert.Equal(t, "spec.a", first.String())
	assert.Equal(t, "spec.b", second.String())
}
