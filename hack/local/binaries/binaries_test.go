// SPDX-License-Identifier: Apache-2.0

package binaries

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestAssetsAreUsedUnchanged(t *testing.T) {
	assets := t.TempDir()
	for _, name := range []string{Etcd, APIServer} {
		require.NoError(t, os.WriteFile(filepath.Join(assets, name), nil, 0o700))
	}
	source := Source{Assets: assets, Bin: filepath.Join(t.TempDir(), "bin")}
	paths, err := source.Ensure(t.Context(), []string{Etcd, APIServer})
	require.NoError(t, err)
	assert.Equal(t, Paths{Etcd: filepath.Join(assets, Etcd), APIServer: filepath.Join(assets, APIServer)}, paths)
	assert.NoDirExists(t, source.Bin)

	_, err = source.Ensure(t.Context(), []string{Etcd, Kwok})
	assert.ErrorContains(t, err, "kwok is not in KUBEBUILDER_ASSETS", "outside the repository nothing can be built")
	require.NoError(t, os.Chmod(filepath.Join(assets, Etcd), 0o600))
	_, err = source.Ensure(t.Context(), []string{Etcd})
	assert.ErrorContains(t, err, "not executable")
}

// TestBuild builds a small program from a temporary module instead of a control plane.
func TestBuild(t *testing.T) {
	module := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":          "module example.com/m\ngo 1.26\nrequire k8s.io/kubernetes v1.36.3\nreplace k8s.io/kubernetes => ./k\n",
		"go.sum":          "",
		"k/go.mod":        "module k8s.io/kubernetes\n",
		"tool/main.go":    "package main\nfunc main() { println(\"hello\") }\n",
		"broken/main.go":  "package main\nfunc main() { nonsense }\n",
		"k/doc.go":        "package k\n",
		"uses/imports.go": "package uses\nimport _ \"k8s.io/kubernetes\"\n",
	} {
		path := filepath.Join(module, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	var out bytes.Buffer
	source := Source{Module: module, Bin: filepath.Join(t.TempDir(), "bin"), Progress: Progress{Out: &out}}
	tool := []binary{{name: "tool", pkg: "./tool"}}
	require.NoError(t, source.build(t.Context(), tool))
	assert.FileExists(t, filepath.Join(source.Bin, "tool"))
	assert.Equal(t, 2, bytes.Count(out.Bytes(), []byte("\n")), "a line at the start and one at the end:\n%s", out.String())
	assert.Contains(t, out.String(), "building tool (1 of 1)")

	out.Reset()
	require.NoError(t, source.build(t.Context(), tool))
	assert.Empty(t, out.String(), "built once")

	require.NoError(t, os.WriteFile(filepath.Join(module, "go.sum"), []byte("\n"), 0o600))
	require.NoError(t, source.build(t.Context(), tool))
	assert.NotEmpty(t, out.String(), "other versions are built anew")

	own := []binary{{name: "own", pkg: "./tool", isOwnModule: true}}
	require.NoError(t, source.build(t.Context(), own))
	out.Reset()
	require.NoError(t, source.build(t.Context(), own))
	assert.Empty(t, out.String(), "built once")
	require.NoError(t, os.WriteFile(filepath.Join(module, "tool", "more.go"), []byte("package main\n"), 0o600))
	require.NoError(t, source.build(t.Context(), tool))
	assert.Empty(t, out.String(), "made of other modules alone")
	require.NoError(t, source.build(t.Context(), own))
	assert.NotEmpty(t, out.String(), "other sources are built anew")

	err := source.build(t.Context(), []binary{{name: "broken", pkg: "./broken"}})
	require.ErrorContains(t, err, "building broken")
	assert.ErrorContains(t, err, "nonsense", "the compiler's words")
	assert.NoFileExists(t, filepath.Join(source.Bin, "broken"))
}

func TestLinkerFlags(t *testing.T) {
	flags := linkerFlags("v1.36.3")
	for _, want := range []string{"-s -w", "version.gitVersion=v1.36.3", "version.gitMajor=1", "version.gitMinor=36"} {
		assert.Contains(t, flags, want)
	}
}

func TestProgressOnTerminal(t *testing.T) {
	var out bytes.Buffer
	done := Progress{Out: &out, Terminal: true}.StartStep("building x", 2, 5)
	done(errors.New("no"))
	assert.Equal(t, "\r\033[Kbuilding x (2 of 5): failed after 0s\n", out.String())
}
