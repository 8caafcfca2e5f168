package render

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestYAMLHasOneForm(t *testing.T) {
	object := map[string]any{
		"reference.resources.gardener.cloud/secret-9a4592dc": "a",
		"reference.resources.gardener.cloud/secret-031abd86": "b",
		"reference.resources.gardener.cloud/secret-12":       "c",
		"n": int64(1), "f": 1.5, "list": []any{"x", map[string]any{"y": "on", "no": nil}}, "text": "a\nb\n", "number": "1e3", "big": int64(9007199254740993),
	}
	first, err := MarshalYAML(object)
	require.NoError(t, err)
	for range 50 {
		again, err := MarshalYAML(object)
		require.NoError(t, err)
		require.Equal(t, string(first), string(again))
	}
	back, err := decodeObject(first)
	require.NoError(t, err)
	require.Equal(t, object, back)
}
