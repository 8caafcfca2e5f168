// SPDX-License-Identifier: Apache-2.0

package unread

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pergola-dev/pergola/schemas/fieldpath"
)

func TestFindField(t *testing.T) {
	object := map[string]any{"spec": map[string]any{"a": map[string]any{"b": 1, "none": nil}, "list": []any{map[string]any{}, map[string]any{"c": 2}, map[string]any{"c": 3}}}}
	for field, want := range map[string]fieldpath.Path{
		"a":      {"spec", "a"},
		"a.b":    {"spec", "a", "b"},
		"a.c":    nil,
		"a.none": nil,
		"a.b.c":  nil,
		"list.c": {"spec", "list", 1, "c"},
		"list.d": nil,
	} {
		assert.Equal(t, want, findField(object, append([]string{"spec"}, strings.Split(field, ".")...), nil), field)
	}
}

// TestFieldsTable checks that the table has fields in specs of owners only.
func TestFieldsTable(t *testing.T) {
	require.NotEmpty(t, fieldsByKind())
	for kind, list := range fieldsByKind() {
		assert.Contains(t, []string{"Garden", "Seed", "Shoot"}, kind)
		for _, field := range list {
			assert.Regexp(t, `^spec(\.[a-zA-Z]+)+$`, field)
		}
	}
}
