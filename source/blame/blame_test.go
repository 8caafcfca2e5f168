// SPDX-License-Identifier: Apache-2.0

package blame

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing"
	gitobject "github.com/go-git/go-git/v5/plumbing/object"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pergola-dev/pergola/source/gittest"
)

type history struct {
	t    *testing.T
	dir  string
	repo *git.Repository
	at   int64
}

func newHistory(t *testing.T) *history {
	t.Helper()
	dir := t.TempDir()
	repo, err := git.PlainInit(dir, false)
	require.NoError(t, err)
	return &history{t: t, dir: dir, repo: repo}
}

func (h *history) write(name, text string) string {
	h.t.Helper()
	file := filepath.Join(h.dir, filepath.FromSlash(name))
	require.NoError(h.t, os.MkdirAll(filepath.Dir(file), 0o755))
	require.NoError(h.t, os.WriteFile(file, []byte(text), 0o644))
	return file
}

func (h *history) commit(subject string, parents ...plumbing.Hash) plumbing.Hash {
	h.t.Helper()
	tree, err := h.repo.Worktree()
	require.NoError(h.t, err)
	require.NoError(h.t, tree.AddWithOptions(&git.AddOptions{All: true}))
	h.at++
	hash, err := tree.Commit(subject+"\n\nAnd why.\n", &git.CommitOptions{Parents: parents, AllowEmptyCommits: true,
		Author: &gitobject.Signature{Name: "Ada", Email: "ada@example.org", When: time.Unix(h.at, 0)}})
	require.NoError(h.t, err)
	return hash
}

// line blames the first line that contains a text.
func (h *history) line(file, text string, limits Limits) Result {
	h.t.Helper()
	data, err := os.ReadFile(file)
	require.NoError(h.t, err)
	repo, err := Open(filepath.Dir(file), limits)
	require.NoError(h.t, err)
	for i, line := range strings.Split(string(data), "\n") {
		if strings.Contains(line, text) {
			answer, err := repo.BlameLine(h.t.Context(), file, i+1)
			require.NoError(h.t, err)
			return answer
		}
	}
	h.t.Fatalf("no line of %s has %q", file, text)
	return Result{}
}

func (h *history) subject(file, text string) string {
	h.t.Helper()
	answer := h.line(file, text, Limits{})
	if answer.Commit == nil {
		return answer.Reason
	}
	return answer.Commit.Subject
}

func TestBlameLine(t *testing.T) {
	h := newHistory(t)
	file := h.write("land/a.yaml", "one\ntwo\nthree\n")
	assert.Equal(t, "not committed yet", h.subject(file, "two"), "there is not a commit at all")
	first := h.commit("first")
	h.write("other.yaml", "x\n")
	h.commit("another file")
	h.write("land/a.yaml", "zero\none\n2\nthree\n")
	h.commit("second")
	assert.Equal(t, "first", h.subject(file, "one"), "a line that moved")
	assert.Equal(t, "second", h.subject(file, "2"))
	assert.Equal(t, "second", h.subject(file, "zero"))
	answer := h.line(file, "three", Limits{})
	assert.Equal(t, &Commit{Hash: first.String(), Author: "Ada", Date: time.Unix(1, 0).UTC(), Subject: "first"}, answer.Commit)

	h.write("land/a.yaml", "new\nzero\none\n2 changed\nthree\n")
	assert.Equal(t, "not committed yet", h.subject(file, "2 changed"))
	assert.Equal(t, "first", h.subject(file, "one"), "below an edit that is not committed")

	assert.Equal(t, "older than the last 2 commits, which were searched", h.line(file, "three", Limits{Commits: 2}).Reason)
	assert.Contains(t, h.line(file, "three", Limits{FileSize: 3}).Reason, "larger than 3 bytes")
}

func TestRenamedFile(t *testing.T) {
	h := newHistory(t)
	text := "one\ntwo\nthree\nfour\nfive\nsix\n"
	old := h.write("old.yaml", text)
	h.commit("first")
	require.NoError(t, os.Remove(old))
	file := h.write("deep/new.yaml", strings.Replace(text, "two", "TWO", 1))
	h.commit("moved")
	assert.Equal(t, "first", h.subject(file, "five"))
	assert.Equal(t, "moved", h.subject(file, "TWO"))
}

func TestMergedLine(t *testing.T) {
	h := newHistory(t)
	file := h.write("a.yaml", "one\n\ntwo\n")
	base := h.commit("base")
	h.write("a.yaml", "ONE\n\ntwo\n")
	left := h.commit("left")
	h.write("a.yaml", "one\n\nTWO\n")
	right := h.commit("right", base)
	h.write("a.yaml", "ONE\n\nTWO\n")
	h.commit("merge", left, right)
	assert.Equal(t, "left", h.subject(file, "ONE"))
	assert.Equal(t, "right", h.subject(file, "TWO"))
}

func TestShallowClone(t *testing.T) {
	h := newHistory(t)
	h.write("a.yaml", "one\n")
	h.commit("first")
	h.write("b.yaml", "x\n")
	h.commit("second")
	dir := t.TempDir()
	_, err := git.PlainClone(dir, false, &git.CloneOptions{URL: h.dir, Depth: 1})
	require.NoError(t, err)
	answer := h.line(filepath.Join(dir, "a.yaml"), "one", Limits{})
	assert.Equal(t, "second", answer.Commit.Subject)
	assert.Contains(t, answer.Reason, "shallow")
}

// TestPartialClone: the earlier file exists only at the remote, so the line may be older than the
// answer.
func TestPartialClone(t *testing.T) {
	repo := gittest.New(t, t.TempDir(), "landscape")
	repo.PushFile("a.yaml", "one\n", "first")
	repo.PushFile("b.yaml", "x\n", "between")
	repo.PushFile("a.yaml", "one\ntwo\n", "second")
	for _, args := range [][]string{{"config", "uploadpack.allowFilter", "true"}, {"config", "uploadpack.allowAnySHA1InWant", "true"}} {
		repo.Git(append([]string{"-C", repo.Bare}, args...)...)
	}
	for filter, want := range map[string]string{"blob:none": "second", "blob:limit=5": "first"} {
		clone := filepath.Join(t.TempDir(), "clone")
		repo.Git("clone", "--quiet", "--filter="+filter, "file://"+repo.Bare, clone)
		answer := (&history{t: t, dir: clone}).line(filepath.Join(clone, "a.yaml"), "one", Limits{})
		require.NotNil(t, answer.Commit, "%+v", answer)
		assert.Equal(t, want, answer.Commit.Subject, filter)
		assert.Equal(t, want == "second", strings.Contains(answer.Reason, "the clone is partial"), "%s: %s", filter, answer.Reason)
	}
}

func TestOutsideOfTheRepository(t *testing.T) {
	h := newHistory(t)
	h.write("a.yaml", "one\n")
	h.commit("first")
	repo, err := Open(h.dir, Limits{})
	require.NoError(t, err)
	_, err = repo.BlameLine(t.Context(), filepath.Join(t.TempDir(), "x.yaml"), 1)
	require.ErrorContains(t, err, "it is not in the repository")
	_, err = Open(t.TempDir(), Limits{})
	require.ErrorContains(t, err, "is not in a Git repository")
}

func TestMatchLine(t *testing.T) {
	many := strings.Repeat("same\n", 3000)
	for name, test := range map[string]struct {
		old, new string
		line     int
		want     int // 0: changed
	}{
		"the same":                  {"a\nb\nc\n", "a\nb\nc\n", 2, 2},
		"inserted above":            {"a\nb\n", "x\ny\na\nb\n", 4, 2},
		"removed above":             {"x\ny\na\nb\n", "a\nb\n", 2, 4},
		"changed":                   {"a\nb\nc\n", "a\nB\nc\n", 2, 0},
		"between changes":           {"a\nb\nc\nd\ne\n", "A\nb\nC\nd\nE\n", 4, 4},
		"equal lines":               {"k:\n  v: 1\nl:\n  v: 1\n", "k:\n  v: 1\nm:\n  v: 1\nl:\n  v: 1\n", 6, 4},
		"new among equal lines":     {"k:\n  v: 1\nl:\n  v: 1\n", "k:\n  v: 1\nm:\n  v: 2\nl:\n  v: 1\n", 4, 0},
		"no unique line":            {"a\na\nb\nb\n", "b\nb\na\na\nb\nb\n", 3, 1},
		"too much without a unique": {"x\n" + many + "y\n", many + many, 3001, 3001},
		"out of range":              {"a\n", "a\n", 9, 0},
	} {
		t.Run(name, func(t *testing.T) {
			at, same := matchLine(test.old, test.new, test.line)
			if name == "too much without a unique" {
				return // only its end matters
			}
			assert.Equal(t, test.want > 0, same)
			if same {
				assert.Equal(t, test.want, at)
			}
		})
	}
}
