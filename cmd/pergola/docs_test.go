package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

// example gives a block of docs/ci.md by the name behind its fence.
func example(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "..", "docs", "ci.md"))
	require.NoError(t, err)
	found := regexp.MustCompile("(?s)```[a-z]+ name=" + regexp.QuoteMeta(name) + "\n(.*?)```").FindSubmatch(data)
	require.NotNil(t, found, name)
	return string(found[1])
}

// reviewed is a clone of a repository with a landscape and its record, and a shell in it that has pergola on its PATH.
func reviewed(t *testing.T) (dir string, shell func(script string, env ...string) (string, error)) {
	t.Helper()
	_, err := exec.LookPath("git")
	require.NoError(t, err, "Go, git and make are what the README asks for")
	landscape, commit := repository(t)
	require.Equal(t, 0, pergola(t, "golden", landscape, "--update").code)
	commit()
	bin := t.TempDir()
	self, err := os.Executable()
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(bin, "pergola"), []byte("#!/bin/sh\n"+asProgram+"=1 exec "+self+" \"$@\"\n"), 0o755))
	dir = filepath.Join(t.TempDir(), "clone")
	shell = func(script string, env ...string) (string, error) {
		cmd := exec.Command("sh", "-c", script)
		if _, err := os.Stat(dir); err == nil {
			cmd.Dir = dir
		}
		cmd.Env = append(os.Environ(), append([]string{"PATH=" + bin + string(os.PathListSeparator) + os.Getenv("PATH"),
			"GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=t", "GIT_AUTHOR_EMAIL=t@example.org", "GIT_COMMITTER_NAME=t", "GIT_COMMITTER_EMAIL=t@example.org"}, env...)...)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	text, err := shell("git clone -q " + filepath.Dir(landscape) + " " + dir)
	require.NoError(t, err, text)
	return dir, shell
}

func TestExampleOfAHook(t *testing.T) {
	dir, shell := reviewed(t)
	hook := filepath.Join(dir, ".git", "hooks", "pre-commit")
	require.NoError(t, os.MkdirAll(filepath.Dir(hook), 0o755))
	require.NoError(t, os.WriteFile(hook, []byte(example(t, "pre-commit")), 0o755))

	seed := filepath.Join("landscape", "seed.yaml")
	change(t, dir, seed, "# The seed", "# A seed")
	text, err := shell("git commit -q -a -m comment")
	require.NoError(t, err, text)

	change(t, dir, seed, "    region: local\n", "    regoin: local\n")
	text, err = shell("git commit -q -a -m typo")
	require.Error(t, err)
	assert.Contains(t, text, `spec.provider.regoin: the field "regoin" does not exist; did you mean "region"?`)
	assert.Regexp(t, `(?m)^landscape/seed\.yaml:\d+:\d+: error: `, text, "as the file is named in the repository")

	change(t, dir, seed, "regoin", "region")
	change(t, dir, filepath.Join("landscape", "project.yaml"), "namespace: garden-local", "namespace: garden-other")
	text, err = shell("git commit -q -a -m immutable")
	require.Error(t, err)
	assert.Contains(t, text, "Project local: spec.namespace: ")

	text, err = shell("git stash -q && git log --format=%s")
	require.NoError(t, err)
	assert.Equal(t, "comment\na change\na change\n", text)
}

func TestExampleForThePreCommitFramework(t *testing.T) {
	dir, shell := reviewed(t)
	var config struct {
		Repos []struct {
			Hooks []struct{ Entry, Files, Language string }
		}
	}
	require.NoError(t, yaml.Unmarshal([]byte(example(t, "pre-commit-config")), &config))
	hook := config.Repos[0].Hooks[0]
	assert.Equal(t, "system", hook.Language)
	assert.Regexp(t, hook.Files, "landscape/seed.yaml")
	text, err := shell(hook.Entry)
	require.NoError(t, err, text)
	change(t, dir, filepath.Join("landscape", "seed.yaml"), "    region: local\n", "    regoin: local\n")
	text, err = shell(hook.Entry)
	require.Error(t, err, text)
	assert.Contains(t, text, "1 error in 1 file")
}

// The examples of hooks hold for the first commit, too.
func TestHooksBeforeTheFirstCommit(t *testing.T) {
	dir, shell := reviewed(t)
	var config struct {
		Repos []struct{ Hooks []struct{ Entry string } }
	}
	require.NoError(t, yaml.Unmarshal([]byte(example(t, "pre-commit-config")), &config))
	text, err := shell("rm -rf .git && git init -q . && git add -A")
	require.NoError(t, err, text)
	hook := filepath.Join(dir, ".git", "hooks", "pre-commit")
	require.NoError(t, os.MkdirAll(filepath.Dir(hook), 0o755))
	require.NoError(t, os.WriteFile(hook, []byte(example(t, "pre-commit")), 0o755))
	for _, script := range []string{config.Repos[0].Hooks[0].Entry, "git commit -q -m first"} {
		text, err = shell(script)
		require.NoError(t, err, text)
		assert.Contains(t, text, "Valid: ")
	}
}

// stepsOf are the commands of a workflow that call pergola.
func stepsOf(t *testing.T, name string) []string {
	t.Helper()
	var github struct {
		Jobs map[string]struct{ Steps []struct{ Run string } }
	}
	var gitlab map[string]struct{ Script []string }
	var all []string
	if name == "github" {
		require.NoError(t, yaml.Unmarshal([]byte(example(t, name)), &github))
		for _, step := range github.Jobs["validate"].Steps {
			all = append(all, step.Run)
		}
	} else {
		require.NoError(t, yaml.Unmarshal([]byte(example(t, name)), &gitlab))
		all = gitlab["landscape"].Script
	}
	var out []string
	for _, step := range all {
		if strings.HasPrefix(step, "pergola ") {
			out = append(out, step)
		}
	}
	require.Len(t, out, 3)
	return out
}

func TestExamplesOfCI(t *testing.T) {
	for _, name := range []string{"github", "gitlab"} {
		t.Run(name, func(t *testing.T) {
			dir, shell := reviewed(t)
			base, err := shell("git rev-parse HEAD")
			require.NoError(t, err)
			summary := filepath.Join(t.TempDir(), "summary.md")
			env := []string{"GITHUB_BASE_REF=" + strings.TrimSpace(must(shell("git branch --show-current"))), "GITHUB_STEP_SUMMARY=" + summary, "CI_MERGE_REQUEST_DIFF_BASE_SHA=" + strings.TrimSpace(base)}
			run := stepsOf(t, name)

			change(t, dir, filepath.Join("landscape", "project.yaml"), "description: The project", "description: A project")
			text, err := shell("git checkout -q -b change && git commit -q -a -m change && pergola golden landscape --update")
			require.NoError(t, err, text)
			for _, step := range run {
				text, err := shell(step, env...)
				require.NoError(t, err, "%s\n%s", step, text)
			}
			if name == "gitlab" {
				summary = filepath.Join(dir, "diff.md")
			}
			report, err := os.ReadFile(summary)
			require.NoError(t, err)
			assert.Contains(t, string(report), "Project local")

			change(t, dir, filepath.Join("landscape", "seed.yaml"), "    region: local\n", "    regoin: local\n")
			text, err = shell(run[0], env...)
			require.Error(t, err)
			assert.Contains(t, text, "regoin")
			change(t, dir, filepath.Join("landscape", "seed.yaml"), "regoin", "region")
			change(t, dir, filepath.Join("landscape", "seed.yaml"), "    - \"0\"\n", "    - \"0\"\n    - \"1\"\n")
			text, err = shell(run[1], env...)
			require.Error(t, err)
			assert.Contains(t, text, "differ from the record")
		})
	}
}

func must(text string, err error) string {
	if err != nil {
		panic(err)
	}
	return text
}
