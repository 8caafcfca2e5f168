// SPDX-License-Identifier: Apache-2.0

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

	"github.com/pergola-dev/pergola/source/forge/forgetest"
)

// docsExample returns a code block of docs/howto/check-pull-requests.md by the name after its
// fence.
func docsExample(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "..", "docs", "howto", "check-pull-requests.md"))
	require.NoError(t, err)
	found := regexp.MustCompile("(?s)```[a-z]+ name=" + regexp.QuoteMeta(name) + "\n(.*?)```").FindSubmatch(data)
	require.NotNil(t, found, name)
	return string(found[1])
}

// cloneWithRecord is a clone of a repository with a landscape and its record, and a shell in it
// with pergola on its PATH.
func cloneWithRecord(t *testing.T) (dir string, shell func(script string, env ...string) (string, error)) {
	t.Helper()
	_, err := exec.LookPath("git")
	require.NoError(t, err, "Go, git and make are what the README asks for")
	landscape, commit := repository(t)
	require.Equal(t, 0, pergola(t, "golden", landscape, "--update").code)
	commit()
	bin := t.TempDir()
	self, err := os.Executable()
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(bin, "pergola"), []byte("#!/bin/sh\n"+envRunAsProgram+"=1 exec "+self+" \"$@\"\n"), 0o755))
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
	dir, shell := cloneWithRecord(t)
	hook := filepath.Join(dir, ".git", "hooks", "pre-commit")
	require.NoError(t, os.MkdirAll(filepath.Dir(hook), 0o755))
	require.NoError(t, os.WriteFile(hook, []byte(docsExample(t, "pre-commit")), 0o755))

	seed := filepath.Join("landscape", "seed.yaml")
	replaceIn(t, dir, seed, "# The seed", "# A seed")
	text, err := shell("git commit -q -a -m comment")
	require.NoError(t, err, text)

	replaceIn(t, dir, seed, "    region: local\n", "    regoin: local\n")
	text, err = shell("git commit -q -a -m typo")
	require.Error(t, err)
	assert.Contains(t, text, `spec.provider.regoin: the field "regoin" does not exist; did you mean "region"?`)
	assert.Regexp(t, `(?m)^landscape/seed\.yaml:\d+:\d+: error: `, text, "as the file is named in the repository")

	replaceIn(t, dir, seed, "regoin", "region")
	replaceIn(t, dir, filepath.Join("landscape", "project.yaml"), "namespace: garden-local", "namespace: garden-other")
	text, err = shell("git commit -q -a -m immutable")
	require.Error(t, err)
	assert.Contains(t, text, "Project local: spec.namespace: ")

	text, err = shell("git stash -q && git log --format=%s")
	require.NoError(t, err)
	assert.Equal(t, "comment\na change\na change\n", text)
}

func TestExampleForThePreCommitFramework(t *testing.T) {
	dir, shell := cloneWithRecord(t)
	var config struct {
		Repos []struct {
			Hooks []struct{ Entry, Files, Language string }
		}
	}
	require.NoError(t, yaml.Unmarshal([]byte(docsExample(t, "pre-commit-config")), &config))
	hook := config.Repos[0].Hooks[0]
	assert.Equal(t, "system", hook.Language)
	assert.Regexp(t, hook.Files, "landscape/seed.yaml")
	text, err := shell(hook.Entry)
	require.NoError(t, err, text)
	replaceIn(t, dir, filepath.Join("landscape", "seed.yaml"), "    region: local\n", "    regoin: local\n")
	text, err = shell(hook.Entry)
	require.Error(t, err, text)
	assert.Contains(t, text, "1 error in 1 file")
}

// TestHooksBeforeTheFirstCommit: the hooks of the docs also work for the first commit.
func TestHooksBeforeTheFirstCommit(t *testing.T) {
	dir, shell := cloneWithRecord(t)
	var config struct {
		Repos []struct{ Hooks []struct{ Entry string } }
	}
	require.NoError(t, yaml.Unmarshal([]byte(docsExample(t, "pre-commit-config")), &config))
	text, err := shell("rm -rf .git && git init -q . && git add -A")
	require.NoError(t, err, text)
	hook := filepath.Join(dir, ".git", "hooks", "pre-commit")
	require.NoError(t, os.MkdirAll(filepath.Dir(hook), 0o755))
	require.NoError(t, os.WriteFile(hook, []byte(docsExample(t, "pre-commit")), 0o755))
	for _, script := range []string{config.Repos[0].Hooks[0].Entry, "git commit -q -m first"} {
		text, err = shell(script)
		require.NoError(t, err, text)
		assert.Contains(t, text, "Valid: ")
	}
}

// pergolaSteps returns the commands of a workflow job in docs/howto/check-pull-requests.md that
// call pergola.
func pergolaSteps(t *testing.T, name, job string) []string {
	t.Helper()
	var actions struct {
		Jobs map[string]struct{ Steps []struct{ Run string } }
	}
	var gitlab map[string]struct{ Script []string }
	var all []string
	if name == "gitlab" {
		require.NoError(t, yaml.Unmarshal([]byte(docsExample(t, name)), &gitlab))
		all = gitlab[job].Script
	} else {
		require.NoError(t, yaml.Unmarshal([]byte(docsExample(t, name)), &actions))
		for _, step := range actions.Jobs[job].Steps {
			all = append(all, step.Run)
		}
	}
	var out []string
	for _, step := range all {
		if strings.HasPrefix(step, "pergola ") || strings.HasPrefix(step, "if ") {
			out = append(out, step)
		}
	}
	return out
}

func TestExamplesOfCI(t *testing.T) {
	for name, steps := range map[string][]string{
		"github": append(pergolaSteps(t, "github", "validate"), pergolaSteps(t, "github-comment", "comment")...),
		"gitlab": pergolaSteps(t, "gitlab", "landscape"), "gitea": pergolaSteps(t, "gitea", "validate"),
	} {
		t.Run(name, func(t *testing.T) {
			require.Len(t, steps, 4, "validate, golden, diff, comment")
			setJobEnvironment(t, nil)
			forge := forgetest.New(t, name)
			dir, shell := cloneWithRecord(t)
			base := strings.TrimSpace(must(shell("git branch base && git rev-parse HEAD")))
			env := []string{
				"GITHUB_BASE_REF=" + strings.TrimSpace(must(shell("git branch --show-current"))), "CI_MERGE_REQUEST_DIFF_BASE_SHA=" + base, "NUMBER=3",
				"GITHUB_REPOSITORY=o/r", "GITHUB_REF=refs/pull/3/head", "GITHUB_API_URL=" + forge.URL + map[bool]string{true: "/api/v3", false: "/api/v1"}[name == "github"],
				"CI_PROJECT_PATH=o/r", "CI_MERGE_REQUEST_IID=3", "CI_API_V4_URL=" + forge.URL + "/api/v4",
			}
			withToken := append(env, "GITHUB_TOKEN="+forgetest.Token, "GITLAB_TOKEN="+forgetest.Token)

			replaceIn(t, dir, filepath.Join("landscape", "project.yaml"), "description: The project", "description: A project")
			text, err := shell("git checkout -q -b change && git commit -q -a -m change && pergola golden landscape --update")
			require.NoError(t, err, text)
			for range 2 {
				for _, step := range steps {
					text, err := shell(step, withToken...)
					require.NoError(t, err, "%s\n%s", step, text)
					assert.NotContains(t, text, forgetest.Token)
				}
			}
			report, err := os.ReadFile(filepath.Join(dir, "diff.md"))
			require.NoError(t, err)
			assert.Contains(t, string(report), "Project local")
			require.Len(t, forge.Comments(), 1, "one comment, however often")
			assert.Contains(t, forge.Comments()[0].Body, "Project local")
			if name == "gitlab" {
				text, err = shell(steps[3], env...)
				require.NoError(t, err, "a fork has no token\n%s", text)
			}

			replaceIn(t, dir, filepath.Join("landscape", "seed.yaml"), "    region: local\n", "    regoin: local\n")
			text, err = shell(steps[0], env...)
			require.Error(t, err)
			assert.Contains(t, text, "regoin")
			replaceIn(t, dir, filepath.Join("landscape", "seed.yaml"), "regoin", "region")
			replaceIn(t, dir, filepath.Join("landscape", "seed.yaml"), "    - \"0\"\n", "    - \"0\"\n    - \"1\"\n")
			text, err = shell(steps[1], env...)
			require.Error(t, err)
			assert.Contains(t, text, "differ from the record")

			text, err = shell("git checkout -q . && git revert --no-edit HEAD && "+steps[2]+" && "+steps[3], withToken...)
			require.NoError(t, err, text)
			require.Len(t, forge.Comments(), 1)
			assert.Contains(t, forge.Comments()[0].Body, "No changes")
		})
	}
}

func must(text string, err error) string {
	if err != nil {
		panic(err)
	}
	return text
}
