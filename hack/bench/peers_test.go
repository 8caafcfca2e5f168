// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pergola-dev/pergola/hack/bench/jsonschema"
)

// peerCase returns the case of a peer, or skips the test: hack/bench.sh builds both.
func peerCase(t *testing.T, name string, l *landscape) *Case {
	t.Helper()
	root, err := filepath.Abs(filepath.Join("..", ".."))
	require.NoError(t, err)
	command := filepath.Join(root, "bin", name)
	if _, err := os.Stat(command); err != nil {
		t.Skipf("no %s in bin: hack/bench.sh builds it", name)
	}
	if name == "kubeconform" {
		dir := t.TempDir()
		require.NoError(t, jsonschema.WriteAll(dir))
		return kubeconformCase(command, dir, l)
	}
	cases, err := l.peerCases(t.Context(), settings{repository: root, cue: command})
	require.NoError(t, err)
	require.Len(t, cases, 1)
	return cases[0]
}

// TestPeersCheck checks that each peer finds errors in the structure of one Shoot: a peer that
// accepts everything would be fast.
func TestPeersCheck(t *testing.T) {
	for _, name := range []string{"cue", "kubeconform"} {
		t.Run(name, func(t *testing.T) {
			l := testLandscape(t, 3)
			command := peerCase(t, name, l)
			_, err := command.run(t.Context())
			require.NoError(t, err, "valid Shoots")
			file := filepath.Join(l.dir, filepath.FromSlash(l.files[2]))
			data, err := os.ReadFile(file)
			require.NoError(t, err)
			for what, broken := range map[string][2]string{
				"unknown field":       {"\nspec:\n", "\nspec:\n  colour: blue\n"},
				"unknown field below": {"\n      cri:\n", "\n      colour: blue\n      cri:\n"},
				"wrong type":          {"nodeCIDRMaskSize: 24", "nodeCIDRMaskSize: large"},
				"value not allowed":   {"    kind: CloudProfile\n", "    kind: Profile\n"},
				"missing field":       {"\n  provider:\n    type: local\n", "\n  provider:\n"},
				"no label":            {"    team: ", "    team: [a]\n    other: "},
			} {
				changed := strings.Replace(string(data), broken[0], broken[1], 1)
				require.NotEqual(t, string(data), changed, what)
				require.NoError(t, os.WriteFile(file, []byte(changed), 0o644))
				_, err := command.run(t.Context())
				assert.ErrorContains(t, err, "exit status 1", what)
			}
		})
	}
}
