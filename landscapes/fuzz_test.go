// SPDX-License-Identifier: Apache-2.0

package landscapes

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pergola-dev/pergola/schemas"
)

// hostileInputs are files that a YAML reader may fail on.
var hostileInputs = []string{
	"", "\n", "---\n---\n", "\ufeffkind: A\n", "a: b\r\nc: d\r\n", "\ta: b\n", "a: [\n", "a: b\na: c\n", "{{ .Values }}\n", "%YAML 1.1\n---\na: b\n",
	"a: &a [*a]\n", "a: &a {b: *a}\n", "&a a: *a\n", "x: &x [l,l]\ny: &y [*x,*x]\nz: &z [*y,*y]\n", "<<: {a: b}\n", "a: &a {b: c}\nd:\n  <<: *a\n  <<: *a\n",
	"kind: !!binary aGk=\n", "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\ndata: {a: !!int x}\n", "1: 2\n", "? {a: b}\n: c\n", "? [a]\n: c\n", "null: null\n",
	"apiVersion: core.gardener.cloud/v1beta1\nkind: Shoot\nmetadata: 7\nspec: []\n", "apiVersion: core.gardener.cloud/v1beta1\nkind: Seed\nmetadata: {name: .nan, labels: {a: .inf}}\nspec: {networks: {pods: 1e400}}\n",
	"apiVersion: v1\nkind: List\nitems: [{}, null, 7, {kind: List, items: []}]\n", "sops: {mac: x}\n", "apiVersion: v1\nkind: Secret\nsops: 5\n",
	strings.Repeat("[", 2000), strings.Repeat("a: ", 500) + "b\n", strings.Repeat("- ", 3000) + "x\n", "a: \"\\ud800\"\n", "a: \x00\n", "\xff\xfe\x00\x00", "a: |9\n x\n", "a: !<tag:yaml.org,2002:map> x\n",
}

// FuzzParse: no file ends the program, blocks it, or causes a finding without a place.
func FuzzParse(f *testing.F) {
	for _, text := range hostileInputs {
		f.Add([]byte(text))
	}
	require.NoError(f, filepath.WalkDir("local", func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".yaml") || strings.Contains(path, "golden") {
			return err
		}
		data, err := os.ReadFile(path)
		f.Add(data)
		return err
	}))
	f.Fuzz(func(t *testing.T, data []byte) {
		started := time.Now()
		declarations, violations, err := Parse(t.Context(), "fuzz.yaml", data, Options{})
		require.NoError(t, err, "what is wrong with a file is a finding")
		var inputs []schemas.Input
		for i := range declarations {
			inputs = append(inputs, schemas.Input{Object: declarations[i].Object(), Positions: &declarations[i]})
		}
		found, err := schemas.Validate(t.Context(), inputs, schemas.Options{})
		require.NoError(t, err)
		for _, v := range append(violations, found...) {
			require.Equal(t, "fuzz.yaml", v.File, "%s", v)
			require.Positive(t, v.Line, "%s", v)
			require.NotEmpty(t, v.Message)
			require.NotContains(t, v.Message, "cannot be checked, because the rule fails", "%s", v)
		}
		// A generous limit separates superlinear work from slow machines.
		require.Less(t, time.Since(started), 30*time.Second, "%d bytes", len(data))
	})
}
