// SPDX-License-Identifier: Apache-2.0

package gittest

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Repository is a bare repository on disk, with a work tree to change it.
type Repository struct {
	// Root is the served folder; Bare is the repository in it; Work is the work tree.
	Root, Bare, Work string
	t                testing.TB
}

// New creates an empty repository, for example `landscape`, with branch main.
func New(t testing.TB, root, name string) *Repository {
	t.Helper()
	r := &Repository{Root: root, Bare: filepath.Join(root, name+".git"), Work: filepath.Join(t.TempDir(), name), t: t}
	r.run(root, "init", "--quiet", "--bare", "--initial-branch=main", r.Bare)
	r.run(root, "init", "--quiet", "--initial-branch=main", r.Work)
	r.Git("remote", "add", "origin", r.Bare)
	return r
}

// Git runs a git command in the work tree, without user configuration, and returns its output.
func (r *Repository) Git(args ...string) string {
	r.t.Helper()
	return r.run(r.Work, args...)
}

func (r *Repository) run(dir string, args ...string) string {
	r.t.Helper()
	command := exec.Command("git", append([]string{"-c", "protocol.file.allow=always"}, args...)...)
	command.Dir = dir
	command.Env = IsolatedEnvironment()
	var stderr bytes.Buffer
	command.Stderr = &stderr
	out, err := command.Output()
	require.NoError(r.t, err, "git %s: %s", strings.Join(args, " "), stderr.String())
	return strings.TrimSpace(string(out))
}

// IsolatedEnvironment isolates git from the configuration of the machine.
func IsolatedEnvironment() []string {
	return []string{"PATH=" + os.Getenv("PATH"), "HOME=/nonexistent", "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_TERMINAL_PROMPT=0",
		"GIT_AUTHOR_NAME=Ada", "GIT_AUTHOR_EMAIL=ada@example.com", "GIT_COMMITTER_NAME=Ada", "GIT_COMMITTER_EMAIL=ada@example.com",
		"GIT_AUTHOR_DATE=2026-01-02T03:04:05Z", "GIT_COMMITTER_DATE=2026-01-02T03:04:05Z"}
}

// WriteFile writes a file to the work tree.
func (r *Repository) WriteFile(name, content string) {
	r.t.Helper()
	file := filepath.Join(r.Work, name)
	require.NoError(r.t, os.MkdirAll(filepath.Dir(file), 0o755))
	require.NoError(r.t, os.WriteFile(file, []byte(content), 0o644))
}

// Commit commits everything without pushing, and returns the commit.
func (r *Repository) Commit(message string, args ...string) string {
	r.t.Helper()
	r.Git("add", "--all")
	r.Git(append([]string{"commit", "--quiet", "--allow-empty", "--message", message}, args...)...)
	return r.Git("rev-parse", "HEAD")
}

// PushFile commits a file and pushes main.
func (r *Repository) PushFile(name, content, message string) string {
	r.t.Helper()
	r.WriteFile(name, content)
	commit := r.Commit(message)
	r.Git("push", "--quiet", "origin", "HEAD:main")
	return commit
}

// CommitMany creates many commits of one file on the current branch, without pushing them, and
// returns the last.
func (r *Repository) CommitMany(count int, name string) string {
	r.t.Helper()
	parent := r.Git("rev-parse", "HEAD")
	var stream strings.Builder
	for i := range count {
		content := fmt.Sprintf("%s %d\n", parent, i)
		fmt.Fprintf(&stream, "commit refs/heads/many\ncommitter Ada <ada@example.com> 1767322000 +0000\ndata 4\nmany\n")
		if i == 0 {
			fmt.Fprintf(&stream, "from %s\n", parent)
		}
		fmt.Fprintf(&stream, "M 644 inline %s\ndata %d\n%s\n", name, len(content), content)
	}
	command := exec.Command("git", "fast-import", "--quiet", "--force")
	command.Dir, command.Env, command.Stdin = r.Work, IsolatedEnvironment(), strings.NewReader(stream.String())
	out, err := command.CombinedOutput()
	require.NoError(r.t, err, string(out))
	r.Git("reset", "--quiet", "--hard", "refs/heads/many")
	return r.Git("rev-parse", "HEAD")
}

// PushFiles commits and pushes many files at once to main.
func (r *Repository) PushFiles(count int, file func(i int) (name, content string)) string {
	r.t.Helper()
	var stream strings.Builder
	stream.WriteString("commit refs/heads/main\ncommitter Ada <ada@example.com> 1767322000 +0000\ndata 4\nmany\n")
	for i := range count {
		name, content := file(i)
		fmt.Fprintf(&stream, "M 644 inline %s\ndata %d\n%s\n", name, len(content), content)
	}
	command := exec.Command("git", "fast-import", "--quiet", "--force")
	command.Dir, command.Env, command.Stdin = r.Work, IsolatedEnvironment(), strings.NewReader(stream.String())
	out, err := command.CombinedOutput()
	require.NoError(r.t, err, string(out))
	r.Git("push", "--quiet", "--force", "origin", "main")
	return r.Git("rev-parse", "main")
}
