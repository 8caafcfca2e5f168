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
	noon = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	prod = types.NamespacedName{Namespace: "garden", Name: "prod"}
)

// hook is a webhook on loopback.
type hook struct {
	*httptest.Server
	mu       sync.Mutex
	messages []Message
	raw      strings.Builder
	answers  []int
	header   http.Header
	hold     chan struct{}
}

func listen(t *testing.T) *hook {
	h := &hook{}
	h.Server = httptest.NewServer(h)
	t.Cleanup(h.Close)
	return h
}

func (h *hook) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, _ := io.ReadAll(req.Body)
	if h.hold != nil {
		select {
		case <-h.hold:
		case <-req.Context().Done():
			return
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	status := http.StatusOK
	if len(h.answers) > 0 {
		status, h.answers = h.answers[0], h.answers[1:]
	}
	if status == http.StatusTooManyRequests {
		w.Header().Set("Retry-After", "90")
	}
	h.raw.Write(body)
	h.header = req.Header
	if status == http.StatusOK {
		var m Message
		_ = json.Unmarshal(body, &m)
		h.messages = append(h.messages, m)
	}
	w.WriteHeader(status)
}

func (h *hook) got() []Message {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]Message{}, h.messages...)
}

func (h *hook) destination(severity Severity) Destination {
	return Destination{Name: "hook", Type: landscapev1alpha1.NotifyWebhook, URL: h.URL + "/?secret=in-the-address", Token: []byte(key), Severity: severity}
}

type fixture struct {
	*Notifier
	clock    *testclock.FakeClock
	recorder *events.FakeRecorder
	mu       sync.Mutex
	logged   strings.Builder
	end      func()
	cancel   context.CancelFunc // ends the context of Start only
}

func start(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{clock: testclock.NewFakeClock(noon), recorder: events.NewFakeRecorder(1000)}
	log := funcr.New(func(prefix, args string) {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.logged.WriteString(prefix + args + "\n")
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
	f.end, f.cancel = ended, cancel
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
	return f.logged.String()
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

func event(phase Phase, message string) Event {
	return Event{Landscape: prod, UID: "u-1", Revision: "main@sha1:" + commit, Commit: commit, SourceURL: "https://bot:pw-of-git@git.example.com/o/r.git", Phase: phase, Reason: "Because", Message: message, At: noon}
}

func TestWebhook(t *testing.T) {
	f, h := start(t), listen(t)
	e := event(Failed, "no good:\nhttps://bot:pw-of-git@git.example.com/o/r.git and "+key+"\x1b[31m")
	e.Severity, e.Detail = Warning, map[string]string{"held": "3", "token": key}
	f.Notify(e, []Destination{h.destination("")})
	f.Notify(e, []Destination{h.destination("")})
	f.eventually(t, 0, func() bool { return len(h.got()) == 1 })
	m := h.got()[0]
	assert.Len(t, m.ID, 32)
	m.ID = ""
	assert.Equal(t, Message{
		Version: 1, Time: noon, Landscape: Landscape{"garden", "prod", "u-1"}, Severity: Warning, Phase: Failed, Reason: "Because",
		Message: "no good:\nhttps://git.example.com/o/r.git and [secret][31m", Revision: "main@sha1:" + commit, Commit: commit, Source: "https://git.example.com/o/r.git",
		Detail: map[string]string{"held": "3", "token": "[secret]"},
	}, m)
	timestamp, signature := receiver.Sign([]byte(key), []byte(h.raw.String()), noon)
	assert.Equal(t, timestamp, h.header.Get("X-Timestamp"))
	assert.Equal(t, signature, h.header.Get("X-Signature"))
	assert.Equal(t, 1, f.count("webhook", repeated))

	e.At = noon.Add(11 * time.Minute)
	f.Notify(e, []Destination{h.destination("")})
	f.eventually(t, 0, func() bool { return len(h.got()) == 2 })
	info := event(Succeeded, "all good")
	f.Notify(info, []Destination{h.destination(Warning)})
	f.Notify(info, []Destination{h.destination("")})
	f.eventually(t, 0, func() bool { return len(h.got()) == 3 })
	assert.Equal(t, Info, h.got()[2].Severity)

	one := <-f.recorder.Events
	assert.Equal(t, "Warning Because no good:\nhttps://git.example.com/o/r.git and [secret][31m", one)
	assert.Len(t, f.recorder.Events, 2)
	assert.NotContains(t, h.raw.String(), "pw-of-git")
}

func TestWebhookIsTriedAgain(t *testing.T) {
	f, h := start(t), listen(t)
	h.answers = []int{503, 429, 500}
	f.Notify(event(Failed, "x"), []Destination{h.destination("")})
	f.eventually(t, 200*time.Millisecond, func() bool { return len(h.got()) == 1 })
	assert.GreaterOrEqual(t, f.clock.Now().Sub(noon), 90*time.Second, "as long as was asked for")

	h.answers = []int{400, 500, 500, 500, 500, 500, 500}
	f.Notify(event(Failed, "not understood"), []Destination{h.destination("")})
	f.eventually(t, time.Second, func() bool { return f.count("webhook", failed) == 1 })
	// It is counted before it is logged.
	f.eventually(t, 0, func() bool { return strings.Contains(f.text(), "the webhook answered 400 Bad Request") })
	f.Notify(event(Failed, "not now"), []Destination{h.destination("")})
	f.eventually(t, time.Second, func() bool { return f.count("webhook", failed) == 2 })
	assert.Empty(t, h.answers, "six tries")
	f.Notify(event(Failed, "not now"), []Destination{h.destination("")})
	// An unsent message does not count as sent.
	f.eventually(t, time.Second, func() bool { return len(h.got()) == 2 })
}

func TestSlowDestinationHindersNobody(t *testing.T) {
	f, slow, fast := start(t), listen(t), listen(t)
	slow.hold = make(chan struct{})
	a, b := slow.destination(""), fast.destination("")
	a.Name, b.Name = "slow", "fast"
	began := time.Now()
	for i := range 200 {
		f.Notify(event(Neutral, fmt.Sprint(i)), []Destination{a})
	}
	for i := range 5 {
		f.Notify(event(Neutral, fmt.Sprint(i)), []Destination{a, b})
	}
	assert.Less(t, time.Since(began), 2*time.Second)
	f.eventually(t, 0, func() bool { return len(fast.got()) == 5 })
	assert.GreaterOrEqual(t, f.count("webhook", dropped), 200-queueLength-1)
	close(slow.hold)
	f.eventually(t, time.Second, func() bool { return len(slow.got()) >= queueLength })
	lost := 0
	for _, m := range slow.got() {
		lost += m.Dropped
	}
	assert.Equal(t, f.count("webhook", dropped), lost, "who misses something is told how much")
}

func TestPaceAndMemory(t *testing.T) {
	f, h := start(t), listen(t)
	for i := range tellBurst + 5 {
		f.Notify(event(Neutral, fmt.Sprint(i)), []Destination{h.destination("")})
	}
	f.eventually(t, 0, func() bool { return len(h.got()) == tellBurst && f.clock.HasWaiters() })
	f.eventually(t, 100*time.Millisecond, func() bool { return len(h.got()) == tellBurst+5 })
	assert.GreaterOrEqual(t, f.clock.Now().Sub(noon), 4*time.Second)
	for i := range 10_000 {
		f.Notify(event(Neutral, fmt.Sprint("flood ", i)), []Destination{h.destination("")})
	}
	assert.LessOrEqual(t, len(f.recorder.Events), eventBurst+10, "Kubernetes events have a pace, too")
	f.Forget(prod)
	f.mu.Lock()
	assert.Empty(t, f.sinks)
	f.mu.Unlock()
}

func TestCommitStatus(t *testing.T) {
	for _, provider := range []string{"github", "gitlab", "gitea", "forgejo"} {
		t.Run(provider, func(t *testing.T) {
			f, s := start(t), forgetest.New(t, provider)
			d := Destination{Name: "status", Type: landscapev1alpha1.NotifyCommitStatus, Provider: provider, URL: s.URL, Token: []byte(forgetest.Token)}
			tell := func(phase Phase, message string) { f.Notify(event(phase, message), []Destination{d}) }
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
			assert.Equal(t, 1, f.count("commitStatus", repeated))
			s.Fail(forgetest.Failure{Status: 401, Body: `{"message":"Bad credentials ` + forgetest.Token + `"}`})
			tell(Failed, "again")
			f.eventually(t, 200*time.Millisecond, func() bool { return f.count("commitStatus", failed) == 1 })
			assert.Contains(t, f.text(), "Bad credentials")
		})
	}
}

// TestNewerStateOvertakes: while the forge fails, only the newest state of a commit is queued.
func TestNewerStateOvertakes(t *testing.T) {
	f, s := start(t), forgetest.New(t, "github")
	d := Destination{Name: "status", Type: landscapev1alpha1.NotifyCommitStatus, Provider: "github", URL: s.URL, Token: []byte(forgetest.Token)}
	s.Fail(forgetest.Failure{Status: 503})
	f.Notify(event(Pending, "1"), []Destination{d})
	f.eventually(t, 0, func() bool { return len(s.Requests()) == 1 && f.clock.HasWaiters() })
	for i := range 5 {
		f.Notify(event(Pending, fmt.Sprint(i+2)), []Destination{d})
	}
	f.Notify(event(Succeeded, "done"), []Destination{d})
	f.eventually(t, 100*time.Millisecond, func() bool { return len(s.Statuses()) == 1 })
	assert.Equal(t, "success", s.Statuses()[0].State)
	f.eventually(t, 0, func() bool { return f.count("commitStatus", superseded) == 6 })
}

func TestEndsCleanly(t *testing.T) {
	f, h, deaf := start(t), listen(t), listen(t)
	deaf.hold = make(chan struct{})
	d := deaf.destination("")
	d.Name = "deaf"
	for i := range tellBurst + 3 {
		f.Notify(event(Neutral, fmt.Sprint(i)), []Destination{h.destination(""), d})
	}
	f.cancel()
	require.Eventually(t, func() bool { return len(h.got()) == tellBurst+3 }, time.Minute, time.Millisecond, "what waits is told, without the pace of every day")
	f.end()
	assert.Len(t, h.got(), tellBurst+3)
	f.Notify(event(Neutral, "late"), []Destination{h.destination("")})
	assert.Empty(t, f.sinks)
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
	assert.EqualError(t, errs[0], `notification "a": a commit status cannot be set: the URL of the source names no host: a forge cannot be found by it`)
}
