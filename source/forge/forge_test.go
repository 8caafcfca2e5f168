// SPDX-License-Identifier: Apache-2.0

package forge

import (
	"context"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/clock"

	"github.com/pergola-dev/pergola/source/forge/forgetest"
)

const commit = "0123456789abcdef0123456789abcdef01234567"

func newTestForge(t *testing.T, s *forgetest.Server, provider string) *Forge {
	t.Helper()
	f, err := New(Options{Provider: provider, URL: s.URL, Token: forgetest.Token})
	require.NoError(t, err)
	t.Cleanup(f.Close)
	return f
}

// fastRetryPolicy tries as often as in CI, without long waits.
func fastRetryPolicy() RetryPolicy {
	return RetryPolicy{Clock: clock.RealClock{}, Backoff: wait.Backoff{Duration: time.Millisecond, Factor: 1, Steps: 5}}
}

func testAllProviders(t *testing.T, test func(t *testing.T, s *forgetest.Server, f *Forge)) {
	t.Helper()
	for _, provider := range Providers() {
		t.Run(provider, func(t *testing.T) {
			s := forgetest.New(t, provider)
			test(t, s, newTestForge(t, s, provider))
		})
	}
}

func TestAPIURL(t *testing.T) {
	for _, c := range []struct{ provider, given, want string }{
		{GitHub, "", "https://api.github.com"}, {GitHub, "https://github.com/", "https://api.github.com"}, {GitHub, "https://api.github.com", "https://api.github.com"},
		{GitHub, "https://ghe.example.com", "https://ghe.example.com/api/v3"}, {GitHub, "https://ghe.example.com/api/v3/", "https://ghe.example.com/api/v3"},
		{GitHub, "https://acme.ghe.com", "https://api.acme.ghe.com"}, {GitHub, "https://api.acme.ghe.com", "https://api.acme.ghe.com"},
		{GitLab, "", "https://gitlab.com"}, {GitLab, "https://git.example.com/api/v4", "https://git.example.com"}, {GitLab, "https://x.example.com/gitlab/", "https://x.example.com/gitlab"},
		{Gitea, "https://git.example.com", "https://git.example.com/api/v1"}, {Forgejo, "http://forgejo.git.svc:3000/api/v1", "http://forgejo.git.svc:3000/api/v1"},
		{Gitea, "https://u:p@git.example.com/sub?x=y", "https://git.example.com/sub/api/v1"},
	} {
		u, err := apiURL(c.provider, c.given)
		require.NoError(t, err, c)
		assert.Equal(t, c.want, u.String(), c)
	}
	for _, c := range []struct{ provider, given, says string }{
		{Gitea, "", "give the URL"}, {"bitbucket", "", "want one of github"}, {GitHub, "git.example.com", "not a URL"}, {GitLab, "ssh://git@x", "not a URL"},
	} {
		_, err := apiURL(c.provider, c.given)
		assert.ErrorContains(t, err, c.says)
	}
	_, err := New(Options{Provider: GitHub, Token: "a\nb"})
	require.ErrorContains(t, err, "line break")
	assert.NotContains(t, err.Error(), "a\nb")
}

func TestLocateRepository(t *testing.T) {
	for _, c := range []struct{ source, at, forge, repository string }{
		{"https://github.com/o/r.git", "", "https://github.com", "o/r"}, {"https://u:p@git.example.com:8443/g/s/r/", "", "https://git.example.com:8443", "g/s/r"},
		{"ssh://git@git.example.com:2222/o/r.git", "", "https://git.example.com", "o/r"}, {"ssh://git@ssh.github.com:443/o/r", "", "https://github.com", "o/r"},
		{"https://x.example.com/gitlab/g/r", "https://x.example.com/gitlab/api/v4", "https://x.example.com/gitlab/api/v4", "g/r"},
		{"ssh://git@git.example.com/o/r", "https://ghe.example.com/api/v3", "https://ghe.example.com/api/v3", "o/r"},
	} {
		forge, repository, err := LocateRepository(c.source, c.at)
		require.NoError(t, err, c)
		assert.Equal(t, c.forge, forge)
		assert.Equal(t, c.repository, repository)
	}
	for _, source := range []string{"file:///srv/git/r", "oci://r.example.com/a/b", "https://git.example.com/", "https://git.example.com/o/../../r", "https://u:secret-value@git.example.com/o", "https://u:secret-value@git.example.com/%zz"} {
		_, _, err := LocateRepository(source, "")
		require.Error(t, err, source)
		assert.NotContains(t, err.Error(), "secret-value")
	}
}

func TestStatuses(t *testing.T) {
	testAllProviders(t, func(t *testing.T, s *forgetest.Server, f *Forge) {
		ctx := context.Background()
		long := strings.Repeat("ö", 400)
		for _, state := range []State{Pending, Pending, Failure, Success} {
			require.NoError(t, f.SetStatus(ctx, "o/r", commit, Status{State: state, Context: "pergola/prod", Description: "line\nbreak " + long}))
		}
		require.NoError(t, f.SetStatus(ctx, "o/r", commit, Status{State: Pending, Context: "pergola/other", Target: "https://x.example.com/y?z=1"}))
		var states []string
		for _, status := range s.Statuses() {
			assert.Equal(t, "o/r", status.Repository)
			assert.Equal(t, commit, status.Commit)
			assert.LessOrEqual(t, len([]rune(status.Description)), 255)
			states = append(states, status.State)
		}
		want := []string{"pending", "pending", "failure", "success", "pending"}
		if f.provider == GitLab {
			// GitLab refuses the same status again, which is not an error
			want = []string{"pending", "failed", "success", "pending"}
		}
		assert.Equal(t, want, states)
		assert.Equal(t, "https://x.example.com/y?z=1", s.Statuses()[len(want)-1].Target)
		require.Error(t, f.SetStatus(ctx, "o/r/../../user", commit, Status{}))
		require.Error(t, f.SetStatus(ctx, "o/r", "HEAD", Status{}))
	})
}

func TestRefusals(t *testing.T) {
	testAllProviders(t, func(t *testing.T, s *forgetest.Server, f *Forge) {
		for _, c := range []struct {
			failure   forgetest.Failure
			temporary bool
			least     time.Duration
			says      string
		}{
			{forgetest.Failure{Status: 500, Body: "<html>secret page</html>"}, true, 0, "500 Internal Server Error"},
			{forgetest.Failure{Status: 429, Header: map[string]string{"Retry-After": "17"}}, true, 17 * time.Second, "429"},
			{forgetest.Failure{Status: 403, Header: map[string]string{"Retry-After": "60"}, Body: `{"message":"secondary rate limit"}`}, true, time.Minute, "secondary rate limit"},
			{forgetest.Failure{Status: 403, Header: map[string]string{"X-RateLimit-Remaining": "0"}}, true, 0, "403"},
			{forgetest.Failure{Status: 403, Body: `{"message":"no, ` + forgetest.Token + `\u001b[31m"}`}, false, 0, "no, [token]"},
			{forgetest.Failure{Status: 401}, false, 0, "401"},
			{forgetest.Failure{Status: 302, Header: map[string]string{"Location": "http://203.0.113.1/"}}, false, 0, "moved"},
			{forgetest.Failure{Status: 422, Body: `{"message":"Validation Failed","errors":[{"field":"sha"}]}`}, false, 0, "sha"},
		} {
			s.Fail(c.failure)
			err := f.SetStatus(context.Background(), "o/r", commit, Status{State: Success, Context: "pergola/x", Description: "d"})
			require.Error(t, err)
			temporary, least := IsTemporary(err)
			assert.Equal(t, c.temporary, temporary, err)
			assert.Equal(t, c.least, least, err)
			assert.Contains(t, err.Error(), c.says)
			assert.NotContains(t, err.Error(), forgetest.Token)
			assert.NotContains(t, err.Error(), "secret page")
			assert.NotContains(t, err.Error(), "\x1b")
		}
		s.Close()
		err := f.SetStatus(context.Background(), "o/r", commit, Status{})
		temporary, _ := IsTemporary(err)
		assert.True(t, temporary, err)
	})
}

func TestEnsureComment(t *testing.T) {
	testAllProviders(t, func(t *testing.T, s *forgetest.Server, f *Forge) {
		keep := func(c Comment) Result {
			t.Helper()
			r, err := f.EnsureComment(context.Background(), "o/r", 3, c, fastRetryPolicy())
			require.NoError(t, err)
			return r
		}
		for range 7 { // more than a page
			s.AddComment("ada", "fine")
		}
		stranger := s.AddComment("mallory", "<!-- pergola:diff -->\nnot ours")
		s.AddComment(s.Login, "> <!-- pergola:diff -->\nquoted")
		assert.Equal(t, Absent, keep(Comment{Marker: "diff", DeleteEmpty: true}).Outcome)
		assert.Equal(t, Created, keep(Comment{Marker: "diff", Body: "one"}).Outcome)
		assert.Equal(t, Unchanged, keep(Comment{Marker: "diff", Body: "one\r\n"}).Outcome)
		assert.Equal(t, Created, keep(Comment{Marker: "diff/prod", Body: "of another job"}).Outcome)
		assert.Equal(t, Updated, keep(Comment{Marker: "diff", Body: strings.Repeat("two\n", 5000)}).Outcome)
		all := s.Comments()
		assert.Len(t, all, 11)
		assert.True(t, strings.HasPrefix(all[9].Body, "<!-- pergola:diff -->\ntwo\n"))
		assert.Equal(t, stranger, all[7].ID)
		assert.Contains(t, all[7].Body, "not ours")
		assert.Equal(t, Deleted, keep(Comment{Marker: "diff", Body: " \n", DeleteEmpty: true}).Outcome)
		assert.Len(t, s.Comments(), 10)
		_, err := f.EnsureComment(context.Background(), "o/r", 3, Comment{Marker: "diff"}, fastRetryPolicy())
		require.ErrorContains(t, err, "is empty")
		_, err = f.EnsureComment(context.Background(), "o/r", 3, Comment{Marker: "--> x", Body: "x"}, fastRetryPolicy())
		require.ErrorContains(t, err, "marker")
	})
}

func TestCommentsSurviveFaults(t *testing.T) {
	testAllProviders(t, func(t *testing.T, s *forgetest.Server, f *Forge) {
		posts := map[bool]string{true: "/notes", false: "/comments"}[f.provider == GitLab]
		s.Fail(forgetest.Failure{Path: "/user", Status: 502}, forgetest.Failure{Method: "GET", Path: posts, Status: 503},
			// created, but the answer got lost
			forgetest.Failure{Method: "POST", Path: posts, Status: 504, AfterExecution: true},
			forgetest.Failure{Method: "GET", Path: posts, Status: 500})
		var waits int
		patience := fastRetryPolicy()
		patience.OnWait = func(error, time.Duration) { waits++ }
		r, err := f.EnsureComment(context.Background(), "o/r", 3, Comment{Marker: "diff", Body: "one"}, patience)
		require.NoError(t, err)
		assert.Equal(t, Unchanged, r.Outcome, "it was there already")
		assert.Len(t, s.Comments(), 1)
		assert.Equal(t, 4, waits)

		s.Fail(forgetest.Failure{Status: 500}, forgetest.Failure{Status: 500}, forgetest.Failure{Status: 500}, forgetest.Failure{Status: 500}, forgetest.Failure{Status: 500})
		_, err = f.EnsureComment(context.Background(), "o/r", 3, Comment{Marker: "diff", Body: "one"}, fastRetryPolicy())
		require.ErrorContains(t, err, "the forge answered 500")
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		s.Fail(forgetest.Failure{Status: 429, Header: map[string]string{"Retry-After": "600"}})
		began := time.Now()
		_, err = f.EnsureComment(ctx, "o/r", 3, Comment{Marker: "diff", Body: "one"}, fastRetryPolicy())
		require.ErrorContains(t, err, "10m0s")
		assert.Less(t, time.Since(began), time.Second, "what cannot succeed in time is not waited for")
	})
}

// TestCommentsOfRunsAtTheSameTime: concurrent runs leave one comment, in any order.
func TestCommentsOfRunsAtTheSameTime(t *testing.T) {
	testAllProviders(t, func(t *testing.T, s *forgetest.Server, f *Forge) {
		const runs = 4
		looked := make(chan struct{})
		var looks atomic.Int32
		s.After = func(req *http.Request) {
			if req.Method == http.MethodGet && strings.Contains(req.URL.Path, "/3/") && looks.Add(1) == runs {
				close(looked)
			}
		}
		s.Before = func(req *http.Request) {
			if req.Method == http.MethodPost {
				<-looked // no one writes before all have listed
			}
		}
		var group sync.WaitGroup
		for range runs {
			group.Go(func() {
				_, err := f.EnsureComment(context.Background(), "o/r", 3, Comment{Marker: "diff", Body: "the same"}, fastRetryPolicy())
				assert.NoError(t, err)
			})
		}
		group.Wait()
		all := s.Comments()
		require.Len(t, all, 1)
		assert.Equal(t, 101, all[0].ID, "the oldest")
	})
}

// TestTokensOfCIJobs: tokens of CI jobs may not ask for their user.
func TestTokensOfCIJobs(t *testing.T) {
	for provider, bot := range map[string]string{GitHub: "github-actions[bot]", Gitea: "gitea-actions", Forgejo: "forgejo-actions"} {
		t.Run(provider, func(t *testing.T) {
			s := forgetest.New(t, provider)
			s.Login, s.BotLogin = "", bot
			f := newTestForge(t, s, provider)
			s.AddComment("mallory", "<!-- pergola:diff -->\nnot ours")
			for _, want := range []Outcome{Created, Unchanged} {
				r, err := f.EnsureComment(context.Background(), "o/r", 3, Comment{Marker: "diff", Body: "one"}, fastRetryPolicy())
				require.NoError(t, err)
				assert.Equal(t, want, r.Outcome)
			}
			assert.Len(t, s.Comments(), 2)
		})
	}
}

func TestOwnCertificatesAndNoOtherHost(t *testing.T) {
	var asked int
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked++
		_, _ = w.Write([]byte("{}"))
	}))
	defer server.Close()
	server.Config.ErrorLog = nil
	for _, provider := range Providers() {
		f, err := New(Options{Provider: provider, URL: server.URL, Token: "t", CA: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})})
		require.NoError(t, err)
		require.NoError(t, f.SetStatus(context.Background(), "o/r", commit, Status{State: Success}))
		_, err = f.http.Get("http://127.0.0.1:1/")
		require.ErrorContains(t, err, "is not followed")
		f.Close()
	}
	assert.Equal(t, 4, asked)
	_, err := New(Options{Provider: Gitea, URL: server.URL, Token: "t", CA: []byte("x")})
	require.ErrorContains(t, err, "PEM")
}

func TestTruncateMarkdown(t *testing.T) {
	body := "<!-- m -->\n<details><summary>a</summary>\n\n````yaml\n" + strings.Repeat("- x: 1\n", 1000) + "````\n\n</details>\n"
	whole, cut := truncateMarkdown(body, 1<<20, "")
	assert.Equal(t, body, whole)
	assert.Zero(t, cut)
	part, cut := truncateMarkdown(body, 4000, "the summary of the job")
	assert.LessOrEqual(t, len(part), 4000)
	assert.Contains(t, part, "\n````\n\n</details>\n\n**Cut here:** ")
	assert.Contains(t, part, "All of it is in the summary of the job.")
	assert.Equal(t, strings.Count(body, "\n")-strings.Count(part[:strings.Index(part, "````\n\n</details>")], "\n"), cut)
	part, _ = truncateMarkdown(strings.Repeat("ö", 5000), 4001, "")
	assert.LessOrEqual(t, len(part), 4001)
	assert.True(t, strings.HasPrefix(part, "öö"))
	assert.NotContains(t, part, "\uFFFD")
}
