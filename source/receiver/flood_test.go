// SPDX-License-Identifier: Apache-2.0

package receiver

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
)

func base64Of(data []byte) string { return base64.StdEncoding.EncodeToString(data) }

// serveConcurrently calls the handler directly, as fast as possible, without a network.
func serveConcurrently(t *testing.T, f *fixture, n int, request func(i int) *http.Request) map[int]int {
	t.Helper()
	var mu sync.Mutex
	statuses := map[int]int{}
	var group sync.WaitGroup
	for worker := range 8 {
		group.Go(func() {
			for i := worker; i < n; i += 8 {
				w := httptest.NewRecorder()
				f.ServeHTTP(w, request(i))
				mu.Lock()
				statuses[w.Code]++
				mu.Unlock()
			}
		})
	}
	group.Wait()
	return statuses
}

func TestBurstIsOneSync(t *testing.T) {
	f := newHandlerFixture(t, targetsOfType(landscapev1alpha1.ReceiverGitHub))
	body := pushOf("refs/heads/main", commit)
	post := func(body string) func(i int) *http.Request {
		return func(i int) *http.Request {
			req := httptest.NewRequest(http.MethodPost, "/hooks/garden/prod/push", strings.NewReader(body))
			req.RemoteAddr = fmt.Sprintf("192.0.2.%d:1234", i%200)
			req.Header.Set("X-GitHub-Event", "push")
			req.Header.Set("X-Hub-Signature-256", "sha256="+hex256(body))
			return req
		}
	}
	statuses := serveConcurrently(t, f, 10_000, post(body))
	assert.Equal(t, map[int]int{http.StatusAccepted: deliveryBurst, http.StatusTooManyRequests: 10_000 - deliveryBurst}, statuses)
	require.Eventually(t, func() bool { return len(f.requestedPushes()) == 1 && f.clock.HasWaiters() }, time.Minute, time.Millisecond)
	f.clock.Step(debounceInterval)
	require.Eventually(t, func() bool { return f.pendingBursts() == 0 }, time.Minute, time.Millisecond)
	assert.Equal(t, []Push{{Ref: "refs/heads/main", Commit: commit, Pusher: "ada"}}, f.requestedPushes(), "10,000 requests are one sync")

	// A change during the burst is synced at its end: only the newest.
	f.clock.Step(time.Minute)
	serveConcurrently(t, f, 50, post(body))
	for i := range 20 {
		f.ServeHTTP(httptest.NewRecorder(), post(pushOf("refs/heads/main", fmt.Sprintf("%040x", i+1)))(0))
	}
	f.ServeHTTP(httptest.NewRecorder(), post(pushOf("refs/heads/main", later))(0))
	require.Eventually(t, func() bool { return len(f.requestedPushes()) == 2 && f.clock.HasWaiters() }, time.Minute, time.Millisecond)
	f.clock.Step(debounceInterval)
	require.Eventually(t, func() bool { return len(f.requestedPushes()) == 3 && f.clock.HasWaiters() }, time.Minute, time.Millisecond)
	assert.Equal(t, later, f.requestedPushes()[2].Commit)
	f.clock.Step(debounceInterval)
	require.Eventually(t, func() bool { return f.pendingBursts() == 0 }, time.Minute, time.Millisecond)
	assert.Len(t, f.requestedPushes(), 3)
}

func (f *fixture) pendingBursts() int {
	f.debouncer.mu.Lock()
	defer f.debouncer.mu.Unlock()
	return len(f.debouncer.bursts)
}

func TestMemoryOfUnprovenFlood(t *testing.T) {
	f := newHandlerFixture(t, targetsOfType(landscapev1alpha1.ReceiverGitHub))
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	statuses := serveConcurrently(t, f, 25_000, func(i int) *http.Request {
		req := httptest.NewRequest(http.MethodPost, fmt.Sprintf("/hooks/garden/prod/name-%d", i), strings.NewReader("{}"))
		req.RemoteAddr = fmt.Sprintf("[2001:db8:%x:%x::1]:1234", i>>16, i&0xffff)
		return req
	})
	runtime.GC()
	runtime.ReadMemStats(&after)
	assert.Equal(t, map[int]int{http.StatusNotFound: 25_000}, statuses, "each came once")
	assert.Less(t, int64(after.HeapAlloc)-int64(before.HeapAlloc), int64(24<<20), "what is remembered is bounded")
	assert.Equal(t, map[string]float64{resultRefused: 25_000}, unprovenResults(t, f), "strangers make no series of their own")

	one := serveConcurrently(t, f, 1000, func(i int) *http.Request {
		req := httptest.NewRequest(http.MethodPost, fmt.Sprintf("/hooks/garden/prod/other-%d", i), strings.NewReader("{}"))
		req.RemoteAddr = "198.51.100.7:1"
		return req
	})
	assert.LessOrEqual(t, one[http.StatusNotFound], failureBurst+8, "one source is stopped, whatever paths it tries")
}

// unprovenResults counts the requests by result; none may count for a receiver.
func unprovenResults(t *testing.T, f *fixture) map[string]float64 {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	require.NoError(t, registry.Register(f.Receiver))
	families, err := registry.Gather()
	require.NoError(t, err)
	out := map[string]float64{}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			labels := map[string]string{}
			for _, l := range m.GetLabel() {
				labels[l.GetName()] = l.GetValue()
			}
			assert.Empty(t, labels["receiver"], labels)
			out[labels["result"]] += m.GetCounter().GetValue()
		}
	}
	return out
}

func TestTooManySignatures(t *testing.T) {
	f := newHandlerFixture(t, targetsOfType(landscapev1alpha1.ReceiverHMAC))
	refused := 0
	for i := range maxSignatures + 10 {
		ok, full := f.usedSignatures.add("r", fmt.Sprint(i), noon.Add(2*MaxClockSkew))
		if full {
			refused++
		} else {
			assert.True(t, ok)
		}
	}
	assert.Equal(t, 10, refused)
	f.clock.Step(2 * MaxClockSkew)
	ok, full := f.usedSignatures.add("r", "1", noon.Add(4*MaxClockSkew))
	assert.True(t, ok && !full, "what holds no longer makes room")
	assert.Len(t, f.usedSignatures.byReceiver["r"], 1)
}

func TestSourceBehindProxies(t *testing.T) {
	r := New(Options{Requester: &recordingRequester{}, Proxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}})
	for _, c := range []struct{ remote, forwarded, want string }{
		{"10.1.1.1:1", "203.0.113.9", "203.0.113.9"}, {"10.1.1.1:1", "198.51.100.1, 203.0.113.9, 10.2.2.2", "203.0.113.9"},
		{"203.0.113.9:1", "198.51.100.1", "203.0.113.9"}, {"10.1.1.1:1", "junk", "10.1.1.1"}, {"10.1.1.1:1", "", "10.1.1.1"},
		{"[2001:db8::1]:1", "", "2001:db8::/64"}, {"[::ffff:203.0.113.9]:1", "", "203.0.113.9"},
	} {
		req := httptest.NewRequest(http.MethodPost, "/", nil)
		req.RemoteAddr = c.remote
		req.Header.Set("X-Forwarded-For", c.forwarded)
		assert.Equal(t, c.want, r.sourceOf(req), "%+v", c)
	}
}

func (f *fixture) follow(t *testing.T, ctx context.Context, body string) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, f.server.URL+"/hooks/garden/prod/push?follow=true", strings.NewReader(body))
	require.NoError(t, err)
	for k, v := range signed(body, f.clock.Now()) {
		req.Header.Set(k, v)
	}
	res, err := f.server.Client().Do(req)
	require.NoError(t, err)
	return res
}

func TestFollow(t *testing.T) {
	f := newServerFixture(t, targetsOfType(landscapev1alpha1.ReceiverHMAC))
	f.recordingRequester.follows = make(chan string, 1)
	body := fmt.Sprintf(`{"ref":"refs/heads/main","commit":%q}`, commit)
	res := f.follow(t, context.Background(), body)
	defer res.Body.Close()
	require.Equal(t, ContentType, res.Header.Get("Content-Type"))
	assert.Equal(t, commit, <-f.recordingRequester.follows)
	lines := bufio.NewScanner(res.Body)
	next := func() Progress {
		var p Progress
		for require.True(t, lines.Scan()); lines.Text() == ""; require.True(t, lines.Scan()) {
		}
		require.NoError(t, json.Unmarshal(lines.Bytes(), &p))
		return p
	}
	assert.Equal(t, PhaseQueued, next().Phase)
	require.Eventually(t, func() bool { return len(f.requestedPushes()) == 1 }, time.Minute, time.Millisecond)
	f.progress <- Progress{Time: noon, Phase: PhaseApplying, Message: "seed\x1b[0m a"}
	assert.Equal(t, Progress{Time: noon, Phase: PhaseApplying, Message: "seed[0m a"}, next(), "flushed at once, also after the time of a request")
	alive := make(chan bool, 1)
	go func() { alive <- lines.Scan() && lines.Text() == "" }()
	// the handler waits for the clock some time after the line before
	require.Eventually(t, func() bool {
		f.clock.Step(heartbeat)
		select {
		case empty := <-alive:
			return assert.True(t, empty, "an empty line shows that it lives")
		default:
			return false
		}
	}, time.Minute, 20*time.Millisecond)
	f.progress <- Progress{Time: noon, Phase: PhaseFailed, Done: true, Err: "no such layer"}
	assert.Equal(t, Progress{Time: noon, Phase: PhaseFailed, Done: true, Err: "no such layer"}, next())
	assert.False(t, lines.Scan())
}

func TestFollowEnds(t *testing.T) {
	f := newServerFixture(t, targetsOfType(landscapev1alpha1.ReceiverHMAC))
	lastOf := func(res *http.Response) Progress {
		defer res.Body.Close()
		var last Progress
		for lines := bufio.NewScanner(res.Body); lines.Scan(); {
			if lines.Text() != "" {
				require.NoError(t, json.Unmarshal(lines.Bytes(), &last))
			}
		}
		return last
	}
	t.Run("with the longest time", func(t *testing.T) {
		res := f.follow(t, context.Background(), `{"by":"1"}`)
		ended := make(chan Progress, 1)
		go func() { ended <- lastOf(res) }()
		var last Progress
		// the handler waits for the clock some time after its first line
		require.Eventually(t, func() bool {
			f.clock.Step(time.Hour)
			select {
			case last = <-ended:
				return true
			default:
				return false
			}
		}, time.Minute, 5*time.Millisecond)
		assert.Equal(t, PhaseUnfollowed, last.Phase)
		assert.True(t, last.Done)
	})
	t.Run("with the follower's leaving", func(t *testing.T) {
		ctx, cancel := context.WithCancel(context.Background())
		res := f.follow(t, ctx, `{"by":"2"}`)
		cancel()
		_ = res.Body.Close()
		require.Eventually(t, func() bool { return len(f.streams) == 0 }, time.Minute, time.Millisecond)
	})
	t.Run("where nothing can be followed", func(t *testing.T) {
		f.refuses = errors.New("not the leader")
		res := f.follow(t, context.Background(), `{"by":"3"}`)
		defer res.Body.Close()
		assert.Equal(t, http.StatusAccepted, res.StatusCode)
	})
}

// TestSlowSender: the server does not wait for a slow sender.
func TestSlowSender(t *testing.T) {
	f := &fixture{recordingRequester: &recordingRequester{targets: targetsOfType(landscapev1alpha1.ReceiverHMAC)}}
	server := NewServer(context.Background(), New(Options{Requester: f.recordingRequester}), discard())
	assert.Equal(t, 5*time.Second, server.ReadHeaderTimeout)
	server.ReadHeaderTimeout, server.ReadTimeout = 100*time.Millisecond, 200*time.Millisecond
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	go func() { _ = server.Serve(listener) }()
	defer server.Close()
	for _, start := range []string{"POST /hooks/garden/prod/push HTTP/1.1\r\nHost: x\r\nX-A: ", "POST /hooks/garden/prod/push HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nabc"} {
		conn, err := net.Dial("tcp", listener.Addr().String())
		require.NoError(t, err)
		_, err = conn.Write([]byte(start))
		require.NoError(t, err)
		require.NoError(t, conn.SetReadDeadline(time.Now().Add(5*time.Second)))
		answer, _ := http.ReadResponse(bufio.NewReader(conn), nil)
		if answer != nil {
			assert.GreaterOrEqual(t, answer.StatusCode, 400)
			_ = answer.Body.Close()
		}
		_ = conn.Close()
	}
	assert.Empty(t, f.requestedPushes())
}
