// SPDX-License-Identifier: Apache-2.0

package source

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
)

// gitProgram runs the machine's git program in one repository. The repository is untrusted: git
// starts no program from its configuration (hooks, fsmonitor, remote helpers, ssh, credential
// helpers) and fetches nothing. It ignores the user's and the system's configuration. The one
// exception is safe.directory: git refuses a repository of another owner unless it is listed there.
type gitProgram struct {
	path, root string
}

// safeDirectory is the setting for trusted repositories of other owners.
const safeDirectory = "safe.directory"

// gitTimeout bounds one command. Searching the messages of a long history takes seconds.
const gitTimeout = time.Minute

// gitUnusableError says why git cannot read a repository at all.
type gitUnusableError struct {
	// foreignOwner says that git refuses the repository because of its owner.
	foreignOwner bool
	cause        string
}

func (e *gitUnusableError) Error() string { return e.cause }

// unknownRevisionError is git's refusal of one revision.
type unknownRevisionError struct {
	// explanation is git's explanation; it is empty if the revision is merely unknown.
	explanation string
}

func (e *unknownRevisionError) Error() string { return e.explanation }

// newGitProgram finds git, or nil if it is not installed. It ignores a program in the current
// folder.
func newGitProgram(root string) *gitProgram {
	path, err := exec.LookPath("git")
	if err != nil {
		return nil
	}
	return &gitProgram{path: path, root: root}
}

// resolveRevision returns the object of a revision, as in `git rev-parse`. The error is a
// *gitUnusableError, an *unknownRevisionError or a failure to run git.
func (g *gitProgram) resolveRevision(rev string) (plumbing.Hash, error) {
	if g == nil {
		return plumbing.ZeroHash, &gitUnusableError{cause: "the git program is not installed"}
	}
	out, said, err := g.run("rev-parse", "--verify", rev)
	if err == nil {
		if doubt := ambiguityWarning(said); doubt != "" {
			return plumbing.ZeroHash, &unknownRevisionError{explanation: doubt}
		}
		if name := strings.TrimSuffix(out, "\n"); isCommit(name) {
			return plumbing.NewHash(name), nil
		}
		return plumbing.ZeroHash, &unknownRevisionError{}
	}
	if !isExitError(err) {
		return plumbing.ZeroHash, err
	}
	if _, said, err := g.run("rev-parse", "--git-dir"); isExitError(err) {
		if strings.Contains(said, safeDirectory) {
			return plumbing.ZeroHash, &gitUnusableError{foreignOwner: true, cause: fmt.Sprintf("git refuses the repository %s, which belongs to another user: "+
				"if you trust it, run `git config --global --add safe.directory %s`", g.root, g.root)}
		}
		return plumbing.ZeroHash, &gitUnusableError{cause: "git does not read this repository: " + fatalMessage(said)}
	}
	return plumbing.ZeroHash, &unknownRevisionError{explanation: fatalMessage(said)}
}

// ambiguityWarning returns a git warning that the answer may not be the intended one.
func ambiguityWarning(said string) string {
	for line := range strings.Lines(said) {
		warning, ok := strings.CutPrefix(line, "warning: ")
		if ok && (strings.Contains(warning, " is ambiguous") || strings.Contains(warning, " only goes back to ")) {
			return boundedLine(warning, 200)
		}
	}
	return ""
}

// fatalMessage returns the line with git's reason to exit, or "" if the revision is merely unknown.
func fatalMessage(said string) string {
	for line := range strings.Lines(said) {
		if cause, ok := strings.CutPrefix(line, "fatal: "); ok && !strings.HasPrefix(cause, "Needed a single revision") {
			return boundedLine(cause, 200)
		}
	}
	return ""
}

func isExitError(err error) bool {
	_, ok := errors.AsType[*exec.ExitError](err)
	return ok
}

// run runs git in the repository. A nonzero exit status is an exec.ExitError.
func (g *gitProgram) run(args ...string) (out, said string, err error) {
	out, said, err = g.runWithConfig(os.DevNull, args...)
	if !isExitError(err) || !strings.Contains(said, safeDirectory) {
		return out, said, err
	}
	trusted, failed := g.writeTrustedConfig()
	if failed != nil || trusted == "" {
		return out, said, errors.Join(err, failed)
	}
	defer os.Remove(trusted)
	return g.runWithConfig(trusted, args...)
}

// runWithConfig runs git with a file as the user's configuration.
func (g *gitProgram) runWithConfig(user string, args ...string) (out, said string, err error) {
	args = append([]string{"--no-pager", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=" + os.DevNull, "-c", "core.warnAmbiguousRefs=true"}, args...)
	return g.runIn(g.root, append(filteredEnvironment(func(name string) bool { return !strings.HasPrefix(name, "GIT_") }),
		"LC_ALL=C", "PWD="+g.root, "GIT_CEILING_DIRECTORIES="+filepath.Dir(g.root), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL="+user,
		"GIT_NO_LAZY_FETCH=1", "GIT_ALLOW_PROTOCOL=none", "GIT_TERMINAL_PROMPT=0", "GIT_OPTIONAL_LOCKS=0"), args...)
}

func (g *gitProgram) runIn(dir string, environment []string, args ...string) (out, said string, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), gitTimeout)
	defer cancel()
	command := exec.CommandContext(ctx, g.path, args...)
	command.Dir, command.Env, command.WaitDelay = dir, environment, time.Second
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr
	err = command.Run()
	switch {
	case ctx.Err() != nil:
		err = fmt.Errorf("git has not answered within %s", gitTimeout)
	case err != nil && !isExitError(err):
		// not wrapped: a missing program or folder must not look like a missing file of a revision
		err = fmt.Errorf("run git: %s", err)
	}
	return stdout.String(), stderr.String(), err
}

// filteredEnvironment returns the variables of this process that keep accepts.
func filteredEnvironment(keep func(name string) bool) []string {
	return slices.DeleteFunc(os.Environ(), func(variable string) bool {
		name, _, _ := strings.Cut(variable, "=")
		return !keep(name)
	})
}

// writeTrustedConfig writes the safe.directory entries of the user and the system to a file; the
// name is empty if there are none. Git reads them only from such files, never from a repository.
func (g *gitProgram) writeTrustedConfig() (string, error) {
	top := filepath.VolumeName(g.root) + string(filepath.Separator)
	out, _, err := g.runIn(top, filteredEnvironment(func(name string) bool {
		return !strings.HasPrefix(name, "GIT_") || strings.HasPrefix(name, "GIT_CONFIG")
	}),
		"config", "--null", "--show-scope", "--get-all", safeDirectory)
	if err != nil {
		return "", nil // no entry, or an old git
	}
	var text strings.Builder
	fields := strings.Split(strings.TrimSuffix(out, "\x00"), "\x00")
	for i := 0; i+1 < len(fields); i += 2 {
		if scope := fields[i]; scope != "local" && scope != "worktree" {
			fmt.Fprintf(&text, "[safe]\n\tdirectory = \"%s\"\n", strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(fields[i+1]))
		}
	}
	if text.Len() == 0 {
		return "", nil
	}
	file, err := os.CreateTemp("", "pergola-gitconfig-")
	if err != nil {
		return "", err
	}
	_, err = file.WriteString(text.String())
	return file.Name(), errors.Join(err, file.Close())
}
