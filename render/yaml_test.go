// SPDX-License-Identifier: Apache-2.0

package render

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
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

// TestMarshalYAMLGoesByJSON: an object has the same form whether it is encoded directly or through
// JSON.
func TestMarshalYAMLGoesByJSON(t *testing.T) {
	type named struct {
		Name  string `json:"name"`
		Empty string `json:"empty,omitempty"`
	}
	for name, test := range map[string]struct {
		object any
		want   string
	}{
		"numbers":       {map[string]any{"i": int64(3), "whole": 3.0, "part": 1.5, "small": 1e-7, "int": 7}, "i: 3\nint: 7\npart: 1.5\nsmall: 1e-7\nwhole: 3\n"},
		"nothing":       {map[string]any{"list": []any(nil), "map": map[string]any(nil), "null": nil}, "list: null\nmap: null\n\"null\": null\n"},
		"empty":         {map[string]any{"list": []any{}, "map": map[string]any{}}, "list: []\nmap: {}\n"},
		"types":         {map[string]any{"a": named{Name: "x"}, "b": []string{"z"}}, "a:\n  name: x\nb:\n  - z\n"},
		"no UTF-8":      {map[string]any{"a": "x\xff\xfey"}, "a: x\ufffd\ufffdy\n"},
		"signs of HTML": {map[string]any{"a": "<&>"}, "a: <&>\n"},
		"words":         {map[string]any{"a": []any{"yes", "falsehood", "false", "1_000", "12:30", "=", "1.2.3 "}}, "a:\n  - \"yes\"\n  - falsehood\n  - \"false\"\n  - \"1_000\"\n  - \"12:30\"\n  - \"=\"\n  - '1.2.3 '\n"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := MarshalYAML(test.object)
			require.NoError(t, err)
			assert.Equal(t, test.want, string(got))
			raw, err := json.Marshal(test.object)
			require.NoError(t, err)
			var plain any
			require.NoError(t, json.Unmarshal(raw, &plain))
			again, err := MarshalYAML(plain)
			require.NoError(t, err)
			assert.Equal(t, string(again), string(got))
		})
	}
}
