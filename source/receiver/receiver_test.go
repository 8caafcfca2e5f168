// SPDX-License-Identifier: Apache-2.0

package receiver

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	testclock "k8s.io/utils/clock/testing"

	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
)

const (
	token  = "s3cret-of-the-receiver"
	commit = "0123456789abcdef0123456789abcdef01234567"
	later  = "fedcba9876543210fedcba9876543210fedcba98"
)

var noon = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

// recordingRequester is a Requester that only records.
type recordingRequester struct {
	mu       sync.Mutex
	targets  map[string]Target
	pushes   []Push
	asked    atomic.Int64
	progress chan Progress
	refuses  error
	follows  chan string
}

func (s *recordingRequester) Receiver(_ context.Context, namespace, landscape, name string) (Target, bool) {
	s.asked.Add(1)
	t, ok := s.targets[namespace+"/"+landscape+"/"+name]
	return t, ok
}

func (s *recordingRequester) Request(_ context.Context, _ Key, push Push) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pushes = append(s.pushes, push)
}

func (s *recordingRequester) Follow(ctx context.Context, _ Key, commit string) (<-chan Progress, error) {
	if s.refuses != nil {
		return nil, s.refuses
	}
	if s.follows != nil {
		s.follows <- commit
	}
	return s.progress, nil
}

func (s *recordingRequester) requestedPushes() []Push {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Push{}, s.pushes...)
}

type fixture struct {
	*recordingRequester
	clock  *testclock.FakeClock
	server *httptest.Server
	// address of a server that is not httptest's, and the number of requests to it
	address string
	sent    int
	log     *logRecorder
	*Receiver
}

// logRecorder collects logs and answers, which must not contain secrets.
type logRecorder struct {
	mu  sync.Mutex
	all strings.Builder
}

func (l *logRecorder) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.String()
}

func (l *logRecorder) add(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all.WriteString(text + "\n")
}

// newHandlerFixture is a Receiver without a port, for tests that call the handler and count its
// answers. Other processes may connect to a loopback port, for example a test that waits for its
// own server there.
func newHandlerFixture(t *testing.T, targets map[string]Target) *fixture {
	t.Helper()
	f := &fixture{recordingRequester: &recordingRequester{targets: targets, progress: make(chan Progress, 8)}, clock: testclock.NewFakeClock(noon), log: &logRecorder{}}
	f.Receiver = New(Options{Requester: f.recordingRequester, Clock: f.clock, Log: f.logger()})
	t.Cleanup(func() { assert.NotContains(t, f.log.text(), token) })
	return f
}

func newServerFixture(t *testing.T, targets map[string]Target) *fixture {
	t.Helper()
	f := newHandlerFixture(t, targets)
	ctx, cancel := context.WithCancel(context.Background())
	f.server = httptest.NewUnstartedServer(nil)
	f.server.Config = NewServer(ctx, f.Receiver, f.logger())
	f.server.Config.ReadTimeout = 2 * time.Second // followed syncs must outlive it
	f.server.Start()
	t.Cleanup(func() {
		cancel()
		f.server.Close()
	})
	return f
}

func (f *fixture) logger() logr.Logger {
	return funcr.New(func(prefix, args string) { f.log.add(prefix + args) }, funcr.Options{Verbosity: 9})
}

func targetsOfType(kind landscapev1alpha1.ReceiverType) map[string]Target {
	return map[string]Target{"garden/prod/push": {Type: kind, Token: []byte(token)}}
}

type header map[string]string

func (f *fixture) post(t *testing.T, path string, h header, body string) (int, Response) {
	t.Helper()
	req, err := http.NewRequest(http.MethodPost, f.server.URL+path, strings.NewReader(body))
	require.NoError(t, err)
	for k, v := range h {
		req.Header.Set(k, v)
	}
	res, err := f.server.Client().Do(req)
	require.NoError(t, err)
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	f.log.add(string(data))
	var a Response
	require.NoError(t, json.Unmarshal(data, &a), string(data))
	return res.StatusCode, a
}

func hex256(parts ...string) string {
	var all [][]byte
	for _, p := range parts {
		all = append(all, []byte(p))
	}
	return fmt.Sprintf("%x", hmacSum([]byte(token), all...))
}

func signed(body string, at time.Time) header {
	timestamp, signature := Sign([]byte(token), []byte(body), at)
	return header{TimestampHeader: timestamp, SignatureHeader: signature}
}

func pushOf(ref, commit string) string {
	return fmt.Sprintf(`{"ref":%q,"before":"%040d","after":%q,"repository":{"full_name":"o/r"},"pusher":{"name":"ada","email":"a@example.com"},"user_username":"ada","commits":[{"id":%q,"message":"m"}]}`, ref, 0, commit, commit)
}

func TestPushFormats(t *testing.T) {
	body := pushOf("refs/heads/main", commit)
	forge := map[landscapev1alpha1.ReceiverType]func(body, event string) header{
		landscapev1alpha1.ReceiverGitHub: func(body, event string) header {
			return header{"X-GitHub-Event": event, "X-Hub-Signature-256": "sha256=" + hex256(body)}
		},
		landscapev1alpha1.ReceiverGitea: func(body, event string) header {
			return header{"X-Gitea-Event": event, "X-GitHub-Event": event, "X-Gitea-Signature": hex256(body)}
		},
		landscapev1alpha1.ReceiverForgejo: func(body, event string) header {
			return header{"X-Gitea-Event": event, "X-Forgejo-Event": event, "X-Forgejo-Signature": hex256(body)}
		},
		landscapev1alpha1.ReceiverGitLab: func(_, event string) header {
			return header{"X-Gitlab-Event": map[string]string{"push": "Push Hook"}[event], "X-Gitlab-Token": token}
		},
	}
	for kind, headers := range forge {
		t.Run(string(kind), func(t *testing.T) {
			f := newServerFixture(t, targetsOfType(kind))
			status, a := f.post(t, "/hooks/garden/prod/push", headers(body, "push"), body)
			assert.Equal(t, http.StatusAccepted, status)
			assert.Equal(t, resultRequested, a.Result)
			require.Eventually(t, func() bool { return len(f.requestedPushes()) == 1 }, time.Minute, time.Millisecond)
			assert.Equal(t, Push{Ref: "refs/heads/main", Commit: commit, Pusher: "ada"}, f.requestedPushes()[0])

			other := pushOf("refs/heads/feature", commit)
			_, a = f.post(t, "/hooks/garden/prod/push", headers(other, "push"), other)
			assert.Equal(t, resultIgnored, a.Result, "another branch")
			_, a = f.post(t, "/hooks/garden/prod/push", headers(body, "issues"), body)
			assert.Equal(t, resultIgnored, a.Result, "another event")
			if kind != landscapev1alpha1.ReceiverGitLab {
				status, a = f.post(t, "/hooks/garden/prod/push", headers(`{"zen":"…"}`, "ping"), `{"zen":"…"}`)
				assert.Equal(t, http.StatusOK, status)
				assert.Equal(t, resultPing, a.Result)
			}
			for name, h := range map[string]header{
				"no proof":     {"X-GitHub-Event": "push", "X-Gitea-Event": "push", "X-Gitlab-Event": "Push Hook"},
				"wrong proof":  {"X-Hub-Signature-256": "sha256=" + hex256("x"), "X-Gitea-Signature": hex256("x"), "X-Gitlab-Token": token + "x"},
				"sha1":         {"X-Hub-Signature": "sha1=" + hex256(body)[:40]},
				"cut":          {"X-Hub-Signature-256": "sha256=" + hex256(body)[:32], "X-Gitea-Signature": hex256(body)[:32], "X-Gitlab-Token": token[:4]},
				"own over old": {"X-Gitea-Signature": "", "X-Forgejo-Signature": hex256("x"), "X-Gitlab-Token": ""},
			} {
				status, a = f.post(t, "/hooks/garden/prod/push", h, body)
				assert.Equal(t, http.StatusNotFound, status, name)
				assert.Equal(t, resultRefused, a.Result, name)
			}
			assert.Len(t, f.requestedPushes(), 1)
		})
	}
}

func TestSignedByGitLab(t *testing.T) {
	key := []byte("a key of GitLab, not to be seen.")
	f := newServerFixture(t, map[string]Target{"garden/prod/push": {Type: landscapev1alpha1.ReceiverGitLab, Token: []byte("whsec_YSBrZXkgb2YgR2l0TGFiLCBub3QgdG8gYmUgc2Vlbi4=")}})
	body := pushOf("refs/heads/main", commit)
	send := func(id string, at time.Time, key []byte) (int, Response) {
		stamp := fmt.Sprint(at.Unix())
		return f.post(t, "/hooks/garden/prod/push", header{
			"X-Gitlab-Event": "Push Hook", "Webhook-Id": id, "Webhook-Timestamp": stamp,
			"Webhook-Signature": "v1,AAAA v1," + base64Of(hmacSum(key, []byte(id+"."+stamp+"."+body))),
		}, body)
	}
	for _, c := range []struct {
		id     string
		at     time.Time
		key    []byte
		result string
	}{
		{"1", noon, key, resultRequested}, {"1", noon, key, resultReplayed}, {"2", noon.Add(-6 * time.Minute), key, resultRefused},
		{"3", noon, []byte("another"), resultRefused}, {"4", noon.Add(time.Minute), key, resultRequested},
	} {
		_, a := send(c.id, c.at, c.key)
		assert.Equal(t, c.result, a.Result, c.id)
	}
	_, a := f.post(t, "/hooks/garden/prod/push", header{"X-Gitlab-Event": "Push Hook", "X-Gitlab-Token": "whsec_YSBrZXkgb2YgR2l0TGFiLCBub3QgdG8gYmUgc2Vlbi4="}, body)
	assert.Equal(t, resultRefused, a.Result, "the signing token itself proves nothing")
}

func TestHMAC(t *testing.T) {
	f := newServerFixture(t, targetsOfType(landscapev1alpha1.ReceiverHMAC))
	path := "/hooks/garden/prod/push"
	body := fmt.Sprintf(`{"ref":"refs/heads/main","commit":%q,"by":"ada\u001b[31m"}`, commit)
	h := signed(body, noon)
	_, a := f.post(t, path, h, body)
	assert.Equal(t, resultRequested, a.Result)
	require.Eventually(t, func() bool { return len(f.requestedPushes()) == 1 }, time.Minute, time.Millisecond)
	assert.Equal(t, Push{Ref: "refs/heads/main", Commit: commit, Pusher: "ada[31m"}, f.requestedPushes()[0])

	status, a := f.post(t, path, h, body)
	assert.Equal(t, http.StatusConflict, status)
	assert.Equal(t, resultReplayed, a.Result)

	f.clock.Step(MaxClockSkew - time.Second)
	_, a = f.post(t, path, h, body)
	assert.Equal(t, resultReplayed, a.Result, "also later in the window")
	f.clock.Step(2 * time.Second)
	_, a = f.post(t, path, h, body)
	assert.Equal(t, resultRefused, a.Result, "and not after it")

	future := f.clock.Now().Add(MaxClockSkew + 2*time.Second)
	for name, h := range map[string]header{
		"from the future": signed(body, future), "no timestamp": {SignatureHeader: h[SignatureHeader]},
		"another timestamp": {TimestampHeader: fmt.Sprint(f.clock.Now().Unix()), SignatureHeader: h[SignatureHeader]},
		"another body":      signed(body+" ", f.clock.Now()),
	} {
		_, a = f.post(t, path, h, body)
		assert.Equal(t, resultRefused, a.Result, name)
	}
	for name, body := range map[string]string{"no JSON": "{", "deep": strings.Repeat("[", 100_000), "a number": `{"ref":1}`} {
		status, a = f.post(t, path, signed(body, f.clock.Now()), body)
		assert.Equal(t, http.StatusBadRequest, status, name)
		assert.Equal(t, resultInvalid, a.Result, name)
	}
	_, a = f.post(t, path, signed("", f.clock.Now()), "")
	assert.Equal(t, resultRequested, a.Result, "an empty body asks for a sync")
}

func TestStrangersLearnNothing(t *testing.T) {
	f := newServerFixture(t, targetsOfType(landscapev1alpha1.ReceiverGitHub))
	type seen struct {
		status int
		answer Response
	}
	var all []seen
	for _, path := range []string{"/hooks/garden/prod/push", "/hooks/garden/prod/other", "/hooks/garden/nope/push", "/hooks/x", "/", "/hooks/garden/prod/push/more", "/hooks/%2e%2e/prod/push", "/hooks/garden/prod/" + strings.Repeat("a", 4000)} {
		status, a := f.post(t, path, header{"X-Hub-Signature-256": "sha256=" + hex256("wrong")}, "{}")
		all = append(all, seen{status, a})
	}
	for _, one := range all {
		assert.Equal(t, all[0], one)
	}
	assert.Equal(t, int64(3), f.asked.Load(), "what cannot be a name is not looked up")
	res, err := http.Get(f.server.URL + "/hooks/garden/prod/push")
	require.NoError(t, err)
	require.NoError(t, res.Body.Close())
	assert.Equal(t, http.StatusMethodNotAllowed, res.StatusCode)
}

func TestBodyLimits(t *testing.T) {
	f := newServerFixture(t, targetsOfType(landscapev1alpha1.ReceiverHMAC))
	large := strings.Repeat(" ", maxBody+1)
	status, a := f.post(t, "/hooks/garden/prod/push", signed(large, noon), large)
	assert.Equal(t, http.StatusRequestEntityTooLarge, status)
	assert.Equal(t, resultTooLarge, a.Result)

	// without a known length
	req, err := http.NewRequest(http.MethodPost, f.server.URL+"/hooks/garden/prod/push", io.MultiReader(bytes.NewReader([]byte(large))))
	require.NoError(t, err)
	res, err := f.server.Client().Do(req)
	require.NoError(t, err)
	require.NoError(t, res.Body.Close())
	assert.Equal(t, http.StatusRequestEntityTooLarge, res.StatusCode)

	h := signed("x", noon)
	h["Content-Encoding"] = "gzip"
	status, _ = f.post(t, "/hooks/garden/prod/push", h, "x")
	assert.Equal(t, http.StatusUnsupportedMediaType, status)
	fits := `{"ref":"refs/heads/main"` + strings.Repeat(" ", maxBody-25) + `}`
	_, a = f.post(t, "/hooks/garden/prod/push", signed(fits, noon), fits)
	assert.Equal(t, resultRequested, a.Result)
	form := "payload=" + "%7B%22ref%22%3A%22refs%2Fheads%2Fmain%22%7D"
	h = signed(form, noon)
	h["Content-Type"] = "application/x-www-form-urlencoded"
	_, a = f.post(t, "/hooks/garden/prod/push", h, form)
	assert.Equal(t, resultRequested, a.Result)
}

func TestFollowedRefs(t *testing.T) {
	type ref = landscapev1alpha1.Reference
	for _, c := range []struct {
		ref    ref
		pushed string
		want   bool
	}{
		{ref{}, "refs/heads/main", true}, {ref{}, "refs/heads/master", false}, {ref{}, "", true}, {ref{}, "main", false}, {ref{}, "refs/tags/main", false},
		{ref{Branch: "a/b"}, "refs/heads/a/b", true}, {ref{Branch: "a/b"}, "refs/heads/b", false},
		{ref{Tag: "v1"}, "refs/tags/v1", true}, {ref{Tag: "v1"}, "refs/tags/v2", false}, {ref{Tag: "v1", Branch: "main"}, "refs/heads/main", false},
		{ref{SemVer: ">=1"}, "refs/tags/v9", true}, {ref{SemVer: ">=1"}, "refs/heads/main", false},
		{ref{Commit: commit}, "refs/heads/x", true}, {ref{Commit: commit, Branch: "y"}, "refs/heads/x", false}, {ref{Commit: commit, Branch: "y"}, "refs/heads/y", true},
		{ref{}, "refs/pull/1/head", false},
	} {
		assert.Equal(t, c.want, isFollowed(c.ref, c.pushed), "%+v %s", c.ref, c.pushed)
	}
}

func TestNoSecretNoReceiver(t *testing.T) {
	f := newServerFixture(t, map[string]Target{"garden/prod/push": {Type: landscapev1alpha1.ReceiverHMAC}})
	timestamp, signature := Sign(nil, []byte("{}"), noon)
	_, a := f.post(t, "/hooks/garden/prod/push", header{TimestampHeader: timestamp, SignatureHeader: signature}, "{}")
	assert.Equal(t, resultRefused, a.Result)
	timestamp, signature = Sign([]byte("no sender knows this one"), []byte("{}"), noon)
	_, a = f.post(t, "/hooks/garden/none/push", header{TimestampHeader: timestamp, SignatureHeader: signature}, "{}")
	assert.Equal(t, resultRefused, a.Result)
}

func discard() logr.Logger { return logr.Discard() }
