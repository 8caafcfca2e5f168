// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/stretchr/testify/require"

	"github.com/pergola-dev/pergola/components"
)

// commandResult is the result of a command that ran in this process.
type commandResult struct {
	code           int
	stdout, stderr string
}

// envRunAsProgram is the variable that turns the test binary into pergola.
const envRunAsProgram = "PERGOLA_TEST_AS_PROGRAM"

// TestMain hides the keys and clusters of the user who runs the tests.
func TestMain(m *testing.M) {
	if os.Getenv(envRunAsProgram) != "" || len(os.Args) > 1 && os.Args[1] == evaluateCommand {
		main() // an evaluation worker: the program starts itself
	}
	if os.Getenv(envReportLogger) != "" {
		reportLogger()
	}
	if os.Getenv(envInterruptReaction)+os.Getenv(envCleanupFile) != "" {
		// a program that a test started, with that test's environment; it exits without cleanup
		os.Exit(m.Run())
	}
	dir, err := os.MkdirTemp("", "pergola")
	if err != nil {
		panic(err)
	}
	for name, value := range map[string]string{"HOME": dir, "XDG_CONFIG_HOME": dir, "XDG_CACHE_HOME": dir, envCacheDir: "", "SOPS_AGE_KEY": "", "SOPS_AGE_KEY_FILE": "", "KUBECONFIG": filepath.Join(dir, "none")} {
		if err := os.Setenv(name, value); err != nil {
			panic(err)
		}
	}
	code := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// pergola runs a command line in this process.
func pergola(t *testing.T, args ...string) commandResult {
	t.Helper()
	return pergolaWith(t, "", args...)
}

// pergolaWith is pergola with text on standard input.
func pergolaWith(t *testing.T, stdin string, args ...string) commandResult {
	t.Helper()
	var stdout, stderr bytes.Buffer
	root := newRoot()
	root.SetIn(strings.NewReader(stdin))
	root.SetOut(&stdout)
	root.SetErr(&stderr)
	code := run(t.Context(), root, args)
	return commandResult{code, stdout.String(), stderr.String()}
}

// decode parses standard output as JSON.
func decode[T any](t *testing.T, o commandResult) T {
	t.Helper()
	var out T
	require.NoError(t, json.Unmarshal([]byte(o.stdout), &out), "%+v", o)
	return out
}

func writeFile(t *testing.T, dir, name, content string) {
	t.Helper()
	p := filepath.Join(dir, filepath.FromSlash(name))
	require.NoError(t, os.MkdirAll(filepath.Dir(p), 0o755))
	require.NoError(t, os.WriteFile(p, []byte(content), 0o644))
}

// replaceIn replaces the first occurrence of a text in a file and fails if there is none.
func replaceIn(t *testing.T, dir, name, before, after string) {
	t.Helper()
	p := filepath.Join(dir, filepath.FromSlash(name))
	data, err := os.ReadFile(p)
	require.NoError(t, err)
	require.Contains(t, string(data), before)
	require.NoError(t, os.WriteFile(p, []byte(strings.Replace(string(data), before, after, 1)), 0o644))
}

// readDemoFile reads a file of the demonstration landscape.
func readDemoFile(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "..", "landscapes", "local", filepath.FromSlash(name)))
	require.NoError(t, err)
	return string(data)
}

// smallLandscape writes a landscape with a Seed, a Project and Secrets, which renders quickly.
func smallLandscape(t *testing.T, dir string) {
	t.Helper()
	writeFile(t, dir, "landscape.yaml", "apiVersion: landscape.pergola.dev/v1alpha1\nkind: Landscape\nmetadata:\n  name: small\nspec:\n  catalogue:\n    version: "+components.Version+"\n")
	writeFile(t, dir, "seed.yaml", readDemoFile(t, "seeds/local.yaml"))
	writeFile(t, dir, "secrets.yaml", readDemoFile(t, "seeds/secrets.yaml"))
	writeFile(t, dir, "project.yaml", readDemoFile(t, "projects/local/project.yaml"))
}

// repository creates a Git repository with a committed small landscape in folder "landscape".
func repository(t *testing.T) (dir string, commit func() string) {
	t.Helper()
	root := t.TempDir()
	repo, err := git.PlainInit(root, false)
	require.NoError(t, err)
	commit = func() string {
		t.Helper()
		tree, err := repo.Worktree()
		require.NoError(t, err)
		require.NoError(t, tree.AddWithOptions(&git.AddOptions{All: true}))
		hash, err := tree.Commit("a change", &git.CommitOptions{Author: &object.Signature{Name: "t", Email: "t@example.org", When: time.Unix(0, 0)}})
		require.NoError(t, err)
		return hash.String()
	}
	dir = filepath.Join(root, "landscape")
	smallLandscape(t, dir)
	commit()
	return dir, commit
}

// removeFiles deletes files of a folder.
func removeFiles(dir string, names ...string) error {
	for _, name := range names {
		if err := os.Remove(filepath.Join(dir, filepath.FromSlash(name))); err != nil {
			return err
		}
	}
	return nil
}
