// SPDX-License-Identifier: Apache-2.0

package source

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pergola-dev/pergola/source/gittest"
)

// newRevisionFixture creates a clone in which each form of gitrevisions(7) has a meaning, and
// returns its repository.
func newRevisionFixture(t *testing.T) *gittest.Repository {
	t.Helper()
	repo := gittest.New(t, t.TempDir(), "landscape")
	repo.PushFile("a.yaml", "1", "first: of {all}")
	repo.Git("tag", "light")
	repo.Git("branch", "former")
	repo.PushFile("a.yaml", "2", "second")
	repo.Git("tag", "--annotate", "--message", "x", "v1.0")
	repo.Git("tag", "--annotate", "--message", "of a tag", "nested", "v1.0")
	repo.Git("tag", "tree", "HEAD^{tree}")
	repo.Git("checkout", "--quiet", "-b", "side", "former")
	repo.WriteFile("b.yaml", "1")
	repo.Commit("aside")
	repo.Git("checkout", "--quiet", "main")
	repo.Git("merge", "--quiet", "--no-ff", "--message", "merged", "side")
	repo.Git("branch", "--set-upstream-to", "origin/main")
	repo.Git("remote", "set-head", "origin", "main")
	repo.Git("tag", "both", "former")
	repo.Git("branch", "both", "main")
	repo.Git("update-ref", "refs/odd/place", "HEAD~1")
	return repo
}

func gitRevParse(t *testing.T, dir, rev string) string {
	t.Helper()
	command := exec.Command("git", "rev-parse", "--verify", rev)
	command.Dir, command.Env = dir, append(gittest.IsolatedEnvironment(), "LC_ALL=C")
	out, err := command.Output()
	if err != nil {
		return ""
	}
	// A revision here is a commit, while rev-parse also accepts tags, trees and files.
	command = exec.Command("git", "rev-parse", "--verify", strings.TrimSpace(string(out))+"^{commit}")
	command.Dir, command.Env = dir, gittest.IsolatedEnvironment()
	out, err = command.Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}

// TestRevisionsMatchGit compares each form with git, with and without the git program. Errors name
// the part that is not understood. Without git fewer forms are understood, with the same meaning.
func TestRevisionsMatchGit(t *testing.T) {
	repo := newRevisionFixture(t)
	head := repo.Git("rev-parse", "HEAD")
	for rev, test := range map[string]struct {
		// refused is part of the error; it is empty if the form names a commit.
		refused string
		// needsGit says that the form fails if git is not installed.
		needsGit bool
	}{
		"HEAD": {}, "@": {}, "main": {}, "heads/main": {}, "refs/heads/main": {}, "light": {}, "tags/light": {}, "v1.0": {}, "nested": {},
		"refs/tags/nested": {}, "origin": {}, "origin/main": {}, "origin/HEAD": {}, "remotes/origin/main": {}, "refs/odd/place": {}, "odd/place": {},
		"ORIG_HEAD": {}, "tags/both": {}, "heads/both": {},
		"HEAD~": {}, "HEAD~1": {}, "HEAD~2": {}, "HEAD^": {}, "HEAD^1": {}, "HEAD^2": {}, "HEAD^2~1": {}, "HEAD^0": {}, "HEAD~0": {}, "HEAD^^": {}, "@~1": {}, "v1.0~1": {},
		"v1.0^{}": {}, "v1.0^{commit}": {}, "nested^{commit}~1": {}, "nested^{tag}": {}, "main^{object}": {}, "HEAD^{commit}^2": {},
		head: {}, head[:7]: {}, head[:8] + "~1": {}, strings.ToUpper(head): {}, head + "^2": {}, repo.Git("describe", "--long", "--tags", "HEAD"): {},
		repo.Git("rev-parse", "nested"): {}, repo.Git("rev-parse", "nested")[:9]: {},
		"main@{0}": {needsGit: true}, "main@{1}": {needsGit: true}, "HEAD@{1}": {needsGit: true}, "HEAD@{2}~1": {needsGit: true}, "@{1}": {needsGit: true},
		"main@{upstream}": {needsGit: true}, "main@{u}": {needsGit: true}, "@{u}": {needsGit: true}, "@{U}~1": {needsGit: true}, "@{push}": {needsGit: true},
		"@{-1}": {needsGit: true}, "@{-1}~1": {needsGit: true}, "@{-1}@{0}": {needsGit: true}, "HEAD@{now}": {needsGit: true},
		":/second": {needsGit: true}, ":/^first: of": {needsGit: true}, ":/!-merged": {needsGit: true}, "HEAD^{/second}": {needsGit: true}, "HEAD^{/of .all}}": {needsGit: true},
		"main^{/sec}~1": {needsGit: true},

		"":         {refused: "it does not have the form of a revision"},
		"--all":    {refused: "it does not have the form of a revision"},
		"a\x00b":   {refused: "it does not have the form of a revision"},
		"nowhere":  {refused: "not found in " + repo.Work + ": give a branch, a tag or a commit"},
		"nowhere~": {refused: `"nowhere" is not found in`},
		"maim@{1}": {refused: `"maim" is not found in`},
		"main~9":   {refused: `the history of main ends 2 commits before it, and "~9" leads further`},
		"main^3":   {refused: `main has 2 parents, and "^3" is not one of them`}, "HEAD~99999999999999999999": {refused: `"~99999999999999999999" after HEAD`},
		"main@{99}":                    {refused: `"@{99}"`},
		"main@{nonsense}":              {refused: `"@{nonsense}"`},
		"main@{upstrea}":               {refused: `"@{upstrea}"`},
		"side@{u}":                     {refused: `"@{u}"`},
		"@{-9}":                        {refused: `"@{-9}"`},
		"main@{1":                      {refused: `"@{1"`},
		"HEAD@{2000-01-01}":            {refused: `"@{2000-01-01}"`},
		":/nothing like it":            {refused: `"nothing like it"`},
		"HEAD^{/nothing}":              {refused: `/nothing`},
		"HEAD^{foo}":                   {refused: `"^{foo}" after HEAD is not understood`},
		"HEAD^{tag}":                   {refused: `HEAD is not an annotated tag, which "^{tag}" requires`},
		"HEAD^{tree}":                  {refused: "it is the name of a tree, not of a commit"},
		"tree":                         {refused: "it is the name of a tree, not of a commit"},
		"HEAD foo":                     {refused: "not found in"},
		"HEAD^foo":                     {refused: `"foo" after HEAD^ is not understood`},
		"former..main":                 {refused: `"..main" makes it a range`},
		"former...main":                {refused: `"...main" makes it a range`},
		"HEAD~1..":                     {refused: `".." makes it a range`},
		"..main":                       {refused: `"..main" makes it a range`},
		"main@{u}..":                   {refused: `".." makes it a range`},
		"^main":                        {refused: `"^" leaves the commits of a revision out and names none: give main alone`},
		"HEAD^@":                       {refused: `"^@" names all parents of HEAD`},
		"HEAD^!":                       {refused: `"^!" makes it a range`},
		"HEAD^-1":                      {refused: `"^-1" makes it a range`},
		"HEAD:a.yaml":                  {refused: `":a.yaml" names a file or folder of a commit`},
		"HEAD:":                        {refused: `":" names a file or folder of a commit`},
		"HEAD~1:none":                  {refused: `give the commit alone (HEAD~1)`},
		":a.yaml":                      {refused: `":a.yaml" names a file of the index`},
		":0:a.yaml":                    {refused: `names a file of the index`},
		"~1":                           {refused: `there is no name before "~1": write HEAD~1`},
		"both":                         {refused: `"both" is ambiguous: write out one of refs/tags/both, refs/heads/both`},
		"both~1":                       {refused: `"both" is ambiguous`},
		strings.Repeat("0", 40):        {refused: "not found in"},
		strings.Repeat("1", 40) + "~1": {refused: "not found in"},
	} {
		t.Run(rev, func(t *testing.T) {
			with, err := Open(repo.Work)
			require.NoError(t, err)
			without, err := Open(repo.Work)
			require.NoError(t, err)
			without.program = nil
			if test.refused != "" {
				_, err = with.At(rev)
				require.ErrorContains(t, err, test.refused)
				assert.NotContains(t, err.Error(), "damaged")
				_, err = without.At(rev)
				require.Error(t, err)
				assert.NotContains(t, err.Error(), "damaged")
				return
			}
			want := gitRevParse(t, repo.Work, rev)
			require.NotEmpty(t, want)
			at, err := with.At(rev)
			require.NoError(t, err)
			assert.Equal(t, want, at.Commit)
			at, err = without.At(rev)
			if test.needsGit {
				require.ErrorContains(t, err, "the git program is not installed")
				return
			}
			require.NoError(t, err)
			assert.Equal(t, want, at.Commit)
		})
	}
}

// TestAmbiguousAbbreviation: an ambiguous abbreviation is an error that lists all meanings.
func TestAmbiguousAbbreviation(t *testing.T) {
	repo := gittest.New(t, t.TempDir(), "landscape")
	first := repo.PushFile("a.yaml", "1", "first")
	known := map[string]bool{}
	for _, name := range strings.Fields(repo.Git("cat-file", "--batch-all-objects", "--batch-check=%(objectname)")) {
		known[name[:4]] = true
	}
	double := ""
	for i := 0; double == ""; i++ {
		repo.WriteFile("blob", strings.Repeat("x", i))
		name := repo.Git("hash-object", "-w", "blob")
		if known[name[:4]] {
			double = name[:4]
		}
		known[name[:4]] = true
	}
	repo.Git("update-ref", "refs/heads/keep", first)
	for _, installed := range []bool{true, false} {
		r, err := Open(repo.Work)
		require.NoError(t, err)
		if !installed {
			r.program = nil
		}
		_, err = r.At(double)
		require.ErrorContains(t, err, `"`+double+`" is ambiguous: write out one of `+double)
	}
}

// TestNothingCommitted: the error says that there is not a commit, for any revision.
func TestNothingCommitted(t *testing.T) {
	repo := gittest.New(t, t.TempDir(), "landscape")
	for _, rev := range []string{"HEAD", "@", "main", "HEAD~1", "nowhere"} {
		for _, installed := range []bool{true, false} {
			r, err := Open(repo.Work)
			require.NoError(t, err)
			if !installed {
				r.program = nil
			}
			_, err = r.At(rev)
			require.ErrorContains(t, err, "the branch main has no commit yet; commit the landscape first", rev)
		}
	}
}

// TestGitStartsNoProgram: no form of revision starts a program from the repository's configuration,
// or fetches.
func TestGitStartsNoProgram(t *testing.T) {
	repo := newRevisionFixture(t)
	started := filepath.Join(t.TempDir(), "started")
	script := filepath.Join(t.TempDir(), "script")
	require.NoError(t, os.WriteFile(script, []byte("#!/bin/sh\ntouch "+started+"\n"), 0o755))
	hooks := t.TempDir()
	for _, hook := range []string{"post-index-change", "reference-transaction", "post-checkout", "fsmonitor-watchman"} {
		require.NoError(t, os.Symlink(script, filepath.Join(hooks, hook)))
	}
	for key, value := range map[string]string{
		"core.fsmonitor": script, "core.hooksPath": hooks, "core.sshCommand": script, "core.pager": script, "pager.rev-parse": script, "core.gitProxy": script,
		"core.askPass": script, "credential.helper": "!" + script, "core.editor": script, "core.alternateRefsCommand": script, "diff.external": script,
		"filter.x.smudge": script, "filter.x.process": script, "alias.rev-parse": "!" + script, "remote.origin.uploadpack": script, "gpg.program": script,
		"core.repositoryFormatVersion": "1", "extensions.partialClone": "origin", "remote.origin.promisor": "true", "remote.origin.url": "ext::" + script, "protocol.ext.allow": "always",
	} {
		repo.Git("config", key, value)
	}
	missing := strings.Repeat("1", 40)
	for _, rev := range []string{"HEAD", "main@{1}", "@{u}", ":/second", "HEAD^{/sec}", "HEAD:a.yaml", ":a.yaml", missing, missing + "^{commit}", missing + "~1", "nowhere", "both", "HEAD^{tree}", "HEAD^@"} {
		r, err := Open(repo.Work)
		require.NoError(t, err)
		_, _ = r.At(rev)
		assert.NoFileExists(t, started, rev)
	}
	// Git's environment variables select neither another repository nor other settings.
	t.Setenv("GIT_DIR", t.TempDir())
	t.Setenv("GIT_CONFIG_PARAMETERS", "'core.fsmonitor="+script+"'")
	r, err := Open(repo.Work)
	require.NoError(t, err)
	at, err := r.At("main@{1}")
	require.NoError(t, err)
	assert.Equal(t, repo.Git("rev-parse", "main@{1}"), at.Commit)
	assert.NoFileExists(t, started)
}
