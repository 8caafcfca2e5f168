// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pergola-dev/pergola/source/forge"
	"github.com/pergola-dev/pergola/source/forge/forgetest"
)

// setJobEnvironment hides the environment of the CI job that runs the tests.
func setJobEnvironment(t *testing.T, env map[string]string) {
	t.Helper()
	for _, name := range []string{"GITHUB_TOKEN", "GH_TOKEN", "GITLAB_TOKEN", "GITEA_TOKEN", "FORGEJO_TOKEN", "GITHUB_API_URL", "GITHUB_REPOSITORY", "GITHUB_REF",
		"CI_API_V4_URL", "CI_PROJECT_PATH", "CI_MERGE_REQUEST_PROJECT_PATH", "CI_MERGE_REQUEST_IID", "HTTP_PROXY", "HTTPS_PROXY"} {
		t.Setenv(name, env[name])
	}
}

func TestCommentInJobs(t *testing.T) {
	for provider, env := range map[string]map[string]string{
		forge.GitHub:  {"GITHUB_TOKEN": forgetest.Token, "GITHUB_REPOSITORY": "o/r", "GITHUB_REF": "refs/pull/3/merge", "GITHUB_API_URL": "/api/v3"},
		forge.GitLab:  {"GITLAB_TOKEN": forgetest.Token, "CI_PROJECT_PATH": "fork/r", "CI_MERGE_REQUEST_PROJECT_PATH": "o/r", "CI_MERGE_REQUEST_IID": "3", "CI_API_V4_URL": "/api/v4"},
		forge.Gitea:   {"GITHUB_TOKEN": forgetest.Token, "GITHUB_REPOSITORY": "o/r", "GITHUB_REF": "refs/pull/3/head", "GITHUB_API_URL": "/api/v1"},
		forge.Forgejo: {"FORGEJO_TOKEN": forgetest.Token, "GITHUB_TOKEN": "x", "GITHUB_REPOSITORY": "o/r", "GITHUB_REF": "refs/pull/3/head", "GITHUB_API_URL": "/api/v1"},
	} {
		t.Run(provider, func(t *testing.T) {
			s := forgetest.New(t, provider)
			for name, value := range env {
				if strings.HasPrefix(value, "/api/") {
					env[name] = s.URL + value
				}
			}
			setJobEnvironment(t, env)
			out := pergolaWith(t, "# What changes\n", "comment", "--provider", provider)
			require.Equal(t, 0, out.code, out.stderr)
			assert.Contains(t, out.stdout, "Comment: created")
			out = pergolaWith(t, strings.Repeat("a line of the report\n", 60_000), "comment", "--provider", provider, "--whole", "the summary of the job")
			require.Equal(t, 0, out.code, out.stderr)
			assert.Contains(t, out.stdout, "Comment: updated")
			assert.Regexp(t, `, without its last \d+ lines\.\n`, out.stdout)
			require.Len(t, s.Comments(), 1)
			assert.Contains(t, s.Comments()[0].Body, "All of it is in the summary of the job.")
			out = pergolaWith(t, "", "comment", "--provider", provider, "--delete-empty")
			assert.Equal(t, "Comment: deleted.\n", out.stdout)
			for _, request := range s.Requests() {
				assert.NotContains(t, request, "fork")
			}
		})
	}
}

func TestCommentRefused(t *testing.T) {
	s := forgetest.New(t, forge.Gitea)
	setJobEnvironment(t, nil)
	token := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(token, []byte("wrong-"+forgetest.Token), 0o600))
	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{"--provider", "gitea"}, "set GITEA_TOKEN or GITHUB_TOKEN"},
		{[]string{"--provider", "gitea", "--token-file", token}, "give --repository and --number"},
		{[]string{"--provider", "gitea", "--token-file", token, "--repository", "o/r", "--number", "1"}, "give the URL"},
		{[]string{"--provider", "gitea", "--token-file", token, "--repository", "o/r", "--number", "1", "--url", s.URL}, "401"},
		{[]string{"--provider", "svn", "--token-file", token, "--repository", "o/r", "--number", "1"}, "want one of github, gitlab, gitea, forgejo"},
		{nil, "provider"},
	} {
		out := pergolaWith(t, "text", append([]string{"comment"}, c.args...)...)
		assert.Equal(t, 2, out.code, c)
		assert.Contains(t, out.stderr, c.says)
		assert.NotContains(t, out.stdout+out.stderr, forgetest.Token)
	}
}
