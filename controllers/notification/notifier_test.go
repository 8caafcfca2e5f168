// SPDX-License-Identifier: Apache-2.0

package notification

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	testclock "k8s.io/utils/clock/testing"

	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/source/forge/forgetest"
	"github.com/pergola-dev/pergola/source/receiver"
)

const (
	key    = "webhook-k3y-not-to-be-seen"
	commit = "0123456789abcdef0123456789abcdef01234567"
)

var (
	noon          = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	prodLandscape = types.NamespacedName{Namespace: "garden", Name: "prod"}
)

// webhookServer is a webhook on loopback.
type webhookServer struct {
	*httptest.Server
	mu          sync.Mutex
	messages    []Message
	rawBodies   strings.Builder
	statusCodes []int
	header      http.Header
	blocked     chan struct{}
}

func newWebhookServer(t *testing.T) *webhookServer {
	h := &webhookServer{}
	h.Server = httptest.NewServer(h)
	t.Cleanup(h.Close)
	return h
}

func (h *webhookServer) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, _ := io.ReadAll(req.Body)
	if h.blocked != nil {
		select {
		case <-h.blocked:
		case <-req.Context().Done():
			return
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	status := http.StatusOK
	if len(h.statusCodes) > 0 {
		status, h.statusCodes = h.statusCodes[0], h.statusCodes[1:]
	}
	if status == http.StatusTooManyRequests {
		w.Header().Set("Retry-After", "90")
	}
	h.rawBodies.Write(body)
	h.header = req.Header
	if status == http.StatusOK {
		var m Message
		_ = json.Unmarshal(body, &m)
		h.messages = append(h.messages, m)
	}
	w.WriteHeader(status)
}

func (h *webhookServer) received() []Message {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]Message{}, h.messages...)
}

func (h *webhookServer) destination(severity Severity) Destination {
	return Destination{Name: "hook", Type: landscapev1alpha1.NotifyWebhook, URL: h.URL + "/?secret=in-the-address", Token: []byte(key), Severity: severity}
}

type fixture struct {
	*Notifier
	clock        *testclock.FakeClock
	recorder     *events.FakeRecorder
	mu           sync.Mutex
	logBuffer    strings.Builder
	stopNotifier func()
	cancel       context.CancelFunc // ends the context of Start only
}

func startNotifier(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{clock: testclock.NewFakeClock(noon), recorder: events.NewFakeRecorder(1000)}
	log := funcr.New(func(prefix, args string) {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.logBuffer.WriteString(prefix + args + "\n")
	}, funcr.Options{Verbosity: 9})
	f.Notifier = New(Options{Recorder: f.recorder, Clock: f.clock, Log: log, TargetURL: func(e Event) string { return "https://pergola.example.com/" + e.Landscape.Name }})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- f.Start(ctx) }()
	ended := sync.OnceFunc(func() {
		cancel()
		deadline := time.After(20 * time.Second)
		for {
			select {
			case err := <-done:
				require.NoError(t, err)
				return
			case <-deadline:
				t.Fatal("the Notifier does not end")
			case <-time.After(5 * time.Millisecond):
				f.clock.Step(time.Second)
			}
		}
	})
	f.stopNotifier, f.cancel = ended, cancel
	t.Cleanup(func() {
		ended()
		assert.NotContains(t, f.text(), key)
		assert.NotContains(t, f.text(), forgetest.Token)
		assert.NotContains(t, f.text(), "in-the-address")
	})
	return f
}

func (f *fixture) text() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.logBuffer.String()
}

func (f *fixture) eventually(t *testing.T, step time.Duration, what func() bool) {
	t.Helper()
	require.Eventually(t, func() bool {
		if what() {
			return true
		}
		if step > 0 && f.clock.HasWaiters() {
			f.clock.Step(step)
		}
		return false
	}, 20*time.Second, 2*time.Millisecond)
}

func (f *fixture) count(kind, result string) int {
	return int(testutil.ToFloat64(f.metrics.notifications.WithLabelValues(kind, result)))
}

func newEvent(phase Phase, message string) Event {
	return Event{Landscape: prodLandscape, UID: "u-1", Revision: "main@sha1:" + commit, Commit: commit, SourceURL: "https://bot:pw-of-git@git.example.com/o/r.git", Phase: phase, Reason: "Because", Message: message, At: noon}
}

func TestWebhook(t *testing.T) {
	f, h := startNotifier(t), newWebhookServer(t)
	e := newEvent(Failed, "no good:\nhttps://bot:pw-of-git@git.example.com/o/r.git and "+key+"\x1b[31m")
	e.Severity, e.Detail = Warning, map[string]string{"held": "3", "token": key}
	f.Notify(e, []Destination{h.destination("")})
	f.Notify(e, []Destination{h.destination("")})
	f.eventually(t, 0, func() bool { return len(h.received()) == 1 })
	m := h.received()[0]
	assert.Len(t, m.ID, 32)
	m.ID = ""
	assert.Equal(t, Message{
		Version: 1, Time: noon, Landscape: Landscape{"garden", "prod", "u-1"}, Severity: Warning, Phase: Failed, Reason: "Because",
		Message: "no good:\nhttps://git.example.com/o/r.git and [secret][31m", Revision: "main@sha1:" + commit, Commit: commit, Source: "https://git.example.com/o/r.git",
		Detail: map[string]string{"held": "3", "token": "[secret]"},
	}, m)
	timestamp, signature := receiver.Sign([]byte(key), []byte(h.rawBodies.String()), noon)
	assert.Equal(t, timestamp, h.header.Get("X-Timestamp"))
	assert.Equal(t, signature, h.header.Get("X-Signature"))
	assert.Equal(t, 1, f.count("webhook", resultRepeated))

	e.At = noon.Add(11 * time.Minute)
	f.Notify(e, []Destination{h.destination("")})
	f.eventually(t, 0, func() bool { return len(h.received()) == 2 })
	info := newEvent(Succeeded, "all good")
	f.Notify(info, []Destination{h.destination(Warning)})
	f.Notify(info, []Destination{h.destination("")})
	f.eventually(t, 0, func() bool { return len(h.received()) == 3 })
	assert.Equal(t, Info, h.received()[2].Severity)

	one := <-f.recorder.Events
	assert.Equal(t, "Warning Because no good:\nhttps://git.example.com/o/r.git and [secret][31m", one)
	assert.Len(t, f.recorder.Events, 2)
	assert.NotContains(t, h.rawBodies.String(), "pw-of-git")
}

func TestWebhookRetries(t *testing.T) {
	f, h := startNotifier(t), newWebhookServer(t)
	h.statusCodes = []int{503, 429, 500}
	f.Notify(newEvent(Failed, "x"), []Destination{h.destination("")})
	f.eventually(t, 200*time.Millisecond, func() bool { return len(h.received()) == 1 })
	assert.GreaterOrEqual(t, f.clock.Now().Sub(noon), 90*time.Second, "as long as was asked for")

	h.statusCodes = []int{400, 500, 500, 500, 500, 500, 500}
	f.Notify(newEvent(Failed, "not understood"), []Destination{h.destination("")})
	f.eventually(t, time.Second, func() bool { return f.count("webhook", resultFailed) == 1 })
	// It is counted before it is logged.
	f.eventually(t, 0, func() bool { return strings.Contains(f.text(), "the webhook answered 400 Bad Request") })
	f.Notify(newEvent(Failed, "not now"), []Destination{h.destination("")})
	f.eventually(t, time.Second, func() bool { return f.count("webhook", resultFailed) == 2 })
	assert.Empty(t, h.statusCodes, "six tries")
	f.Notify(newEvent(Failed, "not now"), []Destination{h.destination("")})
	// An unsent message does not count as sent.
	f.eventually(t, time.Second, func() bool { return len(h.received()) == 2 })
}

func TestSlowDestinationDoesNotBlockOthers(t *testing.T) {
	f, slow, fast := startNotifier(t), newWebhookServer(t), newWebhookServer(t)
	slow.blocked = make(chan struct{})
	a, b := slow.destination(""), fast.destination("")
	a.Name, b.Name = "slow", "fast"
	began := time.Now()
	for i := range 200 {
		f.Notify(newEvent(Neutral, fmt.Sprint(i)), []Destination{a})
	}
	for i := range 5 {
		f.Notify(newEvent(Neutral, fmt.Sprint(i)), []Destination{a, b})
	}
	assert.Less(t, time.Since(began), 2*time.Second)
	f.eventually(t, 0, func() bool { return len(fast.received()) == 5 })
	assert.GreaterOrEqual(t, f.count("webhook", resultDropped), 200-queueLength-1)
	close(slow.blocked)
	f.eventually(t, time.Second, func() bool { return len(slow.received()) >= queueLength })
	lost := 0
	for _, m := range slow.received() {
		lost += m.Dropped
	}
	assert.Equal(t, f.count("webhook", resultDropped), lost, "who misses something is told how much")
}

func TestRateLimitAndRepeats(t *testing.T) {
	f, h := startNotifier(t), newWebhookServer(t)
	for i := range sendBurst + 5 {
		f.Notify(newEvent(Neutral, fmt.Sprint(i)), []Destination{h.destination("")})
	}
	f.eventually(t, 0, func() bool { return len(h.received()) == sendBurst && f.clock.HasWaiters() })
	f.eventually(t, 100*time.Millisecond, func() bool { return len(h.received()) == sendBurst+5 })
	assert.GreaterOrEqual(t, f.clock.Now().Sub(noon), 4*time.Second)
	for i := range 10_000 {
		f.Notify(newEvent(Neutral, fmt.Sprint("flood ", i)), []Destination{h.destination("")})
	}
	assert.LessOrEqual(t, len(f.recorder.Events), eventBurst+10, "Kubernetes events have a pace, too")
	f.Forget(prodLandscape)
	f.mu.Lock()
	assert.Empty(t, f.queues)
	f.mu.Unlock()
}

func TestCommitStatus(t *testing.T) {
	for _, provider := range []string{"github", "gitlab", "gitea", "forgejo"} {
		t.Run(provider, func(t *testing.T) {
			f, s := startNotifier(t), forgetest.New(t, provider)
			d := Destination{Name: "status", Type: landscapev1alpha1.NotifyCommitStatus, Provider: provider, URL: s.URL, Token: []byte(forgetest.Token)}
			tell := func(phase Phase, message string) { f.Notify(newEvent(phase, message), []Destination{d}) }
			tell(Pending, "rendering")
			f.eventually(t, 0, func() bool { return len(s.Statuses()) == 1 })
			tell(Pending, "rendering")
			tell(Neutral, "drift repaired")
			s.Fail(forgetest.Failure{Status: 502}, forgetest.Failure{Status: 502})
			tell(Failed, "no such layer; token "+forgetest.Token)
			f.eventually(t, 200*time.Millisecond, func() bool { return len(s.Statuses()) == 2 })
			tell(Succeeded, "142 objects applied, all healthy.")
			f.eventually(t, 200*time.Millisecond, func() bool { return len(s.Statuses()) == 3 })
			failure := map[bool]string{true: "failed", false: "failure"}[provider == "gitlab"]
			target := "https://pergola.example.com/prod"
			assert.Equal(t, []forgetest.Status{
				{Repository: "o/r", Commit: commit, State: "pending", Context: "pergola/prod", Description: "Because: rendering", Target: target},
				{Repository: "o/r", Commit: commit, State: failure, Context: "pergola/prod", Description: "Because: no such layer; token [secret]", Target: target},
				{Repository: "o/r", Commit: commit, State: "success", Context: "pergola/prod", Description: "142 objects applied, all healthy.", Target: target},
			}, s.Statuses())
			assert.Equal(t, 1, f.count("commitStatus", resultRepeated))
			s.Fail(forgetest.Failure{Status: 401, Body: `{"message":"Bad credentials ` + forgetest.Token + `"}`})
			tell(Failed, "again")
			f.eventually(t, 200*time.Millisecond, func() bool { return f.count("commitStatus", resultFailed) == 1 })
			assert.Contains(t, f.text(), "Bad credentials")
		})
	}
}

// TestNewerStateReplacesQueued: while the forge fails, only the newest state of a commit is queued.
func TestNewerStateReplacesQueued(t *testing.T) {
	f, s := startNotifier(t), forgetest.New(t, "github")
	d := Destination{Name: "status", Type: landscapev1alpha1.NotifyCommitStatus, Provider: "github", URL: s.URL, Token: []byte(forgetest.Token)}
	s.Fail(forgetest.Failure{Status: 503})
	f.Notify(newEvent(Pending, "1"), []Destination{d})
	f.eventually(t, 0, func() bool { return len(s.Requests()) == 1 && f.clock.HasWaiters() })
	for i := range 5 {
		f.Notify(newEvent(Pending, fmt.Sprint(i+2)), []Destination{d})
	}
	f.Notify(newEvent(Succeeded, "done"), []Destination{d})
	f.eventually(t, 100*time.Millisecond, func() bool { return len(s.Statuses()) == 1 })
	assert.Equal(t, "success", s.Statuses()[0].State)
	f.eventually(t, 0, func() bool { return f.count("commitStatus", resultSuperseded) == 6 })
}

func TestStartStopsCleanly(t *testing.T) {
	f, h, deaf := startNotifier(t), newWebhookServer(t), newWebhookServer(t)
	deaf.blocked = make(chan struct{})
	d := deaf.destination("")
	d.Name = "deaf"
	for i := range sendBurst + 3 {
		f.Notify(newEvent(Neutral, fmt.Sprint(i)), []Destination{h.destination(""), d})
	}
	f.cancel()
	require.Eventually(t, func() bool { return len(h.received()) == sendBurst+3 }, time.Minute, time.Millisecond, "what waits is told, without the pace of every day")
	f.stopNotifier()
	assert.Len(t, h.received(), sendBurst+3)
	f.Notify(newEvent(Neutral, "late"), []Destination{h.destination("")})
	assert.Empty(t, f.queues)
}

func TestDestinations(t *testing.T) {
	secrets := map[string]map[string][]byte{"forge": {"token": []byte("t"), "ca.crt": []byte("c")}}
	given := []landscapev1alpha1.Notification{
		{Name: "a", Type: landscapev1alpha1.NotifyCommitStatus, Provider: "gitea", SecretRef: &landscapev1alpha1.LocalSecretReference{Name: "forge"}},
		{Name: "b", Type: landscapev1alpha1.NotifyWebhook, URL: "https://x.example.com", Severity: "warning"},
		{Name: "c", Type: landscapev1alpha1.NotifyCommitStatus, Provider: "gitea"},
		{Name: "d", Type: landscapev1alpha1.NotifyWebhook, URL: "https://x.example.com", SecretRef: &landscapev1alpha1.LocalSecretReference{Name: "none"}},
	}
	read := func(name string) (map[string][]byte, error) {
		if data, ok := secrets[name]; ok {
			return data, nil
		}
		return nil, fmt.Errorf("not found")
	}
	out, errs := Destinations("https://git.example.com/a/b.git", given, read)
	assert.Equal(t, []Destination{
		{Name: "a", Type: landscapev1alpha1.NotifyCommitStatus, Provider: "gitea", Token: []byte("t"), CA: []byte("c")},
		{Name: "b", Type: landscapev1alpha1.NotifyWebhook, URL: "https://x.example.com", Severity: Warning},
	}, out)
	require.Len(t, errs, 2)
	assert.ErrorContains(t, errs[0], `"c"`)
	assert.ErrorContains(t, errs[1], `reading Secret "none": not found`)

	out, errs = Destinations("file:///srv/git/landscape.git", given[:2], read)
	require.Len(t, out, 1)
	require.Len(t, errs, 1)
	assert.EqualError(t, errs[0], `notification "a": a commit status cannot be set: the URL of the source names no host, so its forge is unknown`)
}
