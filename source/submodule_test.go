// SPDX-License-Identifier: Apache-2.0

package source

import (
	"io/fs"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pergola-dev/pergola/source/gittest"
)

func TestSubmodules(t *testing.T) {
	root := t.TempDir()
	inner := gittest.New(t, root, "inner")
	inner.PushFile("deep.yaml", "deep", "inner")
	base := gittest.New(t, root, "base")
	base.WriteFile("base.yaml", "base")
	base.Git("submodule", "--quiet", "add", "../inner.git", "in")
	base.Git("submodule", "--quiet", "absorbgitdirs")
	base.Commit("base")
	base.Git("push", "--quiet", "origin", "main")
	repo := gittest.New(t, root, "landscape")
	repo.WriteFile("landscape.yaml", "x")
	repo.Git("submodule", "--quiet", "add", "../base.git", "layers/base")
	repo.Commit("with a submodule")
	repo.Git("push", "--quiet", "origin", "main")
	server := gittest.ServeHTTP(t, root)
	url := server.URL + "/landscape.git"

	s := resolveAndFetch(t, newTestRemote(t, Options{URL: url}))
	_, err := fs.ReadFile(s.FS, "layers/base/base.yaml")
	requireReason(t, ReasonSubmoduleMissing, err)
	require.ErrorContains(t, err, "layers/base is a submodule")
	_, err = fs.Stat(s.FS, "layers/base")
	require.NoError(t, err)
	_, err = fs.ReadDir(s.FS, "layers/base")
	requireReason(t, ReasonSubmoduleMissing, err)
	requireReason(t, ReasonSubmoduleMissing, CheckFiles(s.FS, "."))

	r := newTestRemote(t, Options{URL: url, Submodules: true})
	s = resolveAndFetch(t, r)
	assert.Equal(t, "base", readSnapshotFile(t, s, "layers/base/base.yaml"))
	assert.Equal(t, "deep", readSnapshotFile(t, s, "layers/base/in/deep.yaml"))
	require.NoError(t, fstest.TestFS(s.FS, "layers/base/base.yaml", "layers/base/in/deep.yaml", "landscape.yaml"))
	require.NoError(t, CheckFiles(s.FS, "."))
	server.ResetCounters()
	resolveAndFetch(t, r)
	requests, _ := server.ResetCounters()
	assert.Len(t, requests, 1, "what is there is not asked for again")

	_, err = newTestRemote(t, Options{URL: url, Submodules: true, Limits: Limits{Submodules: 1}}).At(t.Context(), s.Commit)
	requireReason(t, ReasonTooLarge, err)

	for address, want := range map[string]string{
		"https://elsewhere.example.com/base.git": "its server or protocol differs",
		"file://" + base.Bare:                    "its server or protocol differs",
		"../../../base.git":                      "",
		server.URL + "/base.git?token=x":         "query",
		"ext::sh -c whoami":                      "",
	} {
		repo.Git("config", "--file", ".gitmodules", "submodule.layers/base.url", address)
		repo.Commit("another url")
		repo.Git("push", "--quiet", "origin", "main")
		r := newTestRemote(t, Options{URL: url, Submodules: true})
		head, err := r.Resolve(t.Context())
		require.NoError(t, err)
		_, err = r.Fetch(t.Context(), head)
		if address == "../../../base.git" {
			// There is no path above the root of a server.
			require.NoError(t, err)
			continue
		}
		requireReason(t, ReasonInvalid, err)
		require.ErrorContains(t, err, want)
	}
}

func TestPointersOfLFS(t *testing.T) {
	root := t.TempDir()
	repo := gittest.New(t, root, "landscape")
	repo.WriteFile(".gitattributes", "*.yaml filter=lfs diff=lfs merge=lfs -text\n")
	repo.WriteFile("fine/real.yaml", "kind: Seed\n")
	repo.PushFile("seeds/a.yaml", "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\nsize 12345\n", "lfs")
	s := resolveAndFetch(t, newTestRemote(t, Options{URL: "file://" + repo.Bare}))
	for _, name := range []string{"seeds/a.yaml"} {
		_, err := fs.ReadFile(s.FS, name)
		requireReason(t, ReasonLFSUnsupported, err)
		require.ErrorContains(t, err, name)
		_, err = s.FS.Open(name)
		requireReason(t, ReasonLFSUnsupported, err)
	}
	requireReason(t, ReasonLFSUnsupported, CheckFiles(s.FS, "seeds"))
	require.NoError(t, CheckFiles(s.FS, "fine"))
	require.ErrorIs(t, CheckFiles(s.FS, "missing"), fs.ErrNotExist)
}
