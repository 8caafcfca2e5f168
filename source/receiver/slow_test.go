// SPDX-License-Identifier: Apache-2.0

package receiver

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	testclock "k8s.io/utils/clock/testing"

	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
)

const (
	theirs         = "198.51.100.7"
	proxiedAddress = "203.0.113.9"
	// prompt is how long a delivery may take beside slow ones: much longer than it does, and
	// shorter than any timeout of slow senders.
	prompt = time.Second
)

// newProxiedFixture is a Receiver behind a known proxy, so that one machine can have many
// addresses.
func newProxiedFixture(t *testing.T, readTimeout time.Duration) *fixture {
	t.Helper()
	f := &fixture{recordingRequester: &recordingRequester{targets: targetsOfType(landscapev1alpha1.ReceiverHMAC)}, clock: testclock.NewFakeClock(noon)}
	f.Receiver = New(Options{Requester: f.recordingRequester, Clock: f.clock, Proxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
	server := NewServer(context.Background(), f.Receiver, discard())
	server.ReadTimeout = readTimeout
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
	f.address = listener.Addr().String()
	return f
}

// openSlowConnections opens connections that announce a body and send little of it.
func (f *fixture) openSlowConnections(t *testing.T, n int, path func(i int) string, more string) {
	t.Helper()
	for i := range n {
		conn, err := net.Dial("tcp", f.address)
		require.NoError(t, err)
		t.Cleanup(func() { _ = conn.Close() })
		_, err = fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: x\r\nX-Forwarded-For: %s\r\n%sContent-Length: 100\r\n\r\nabc", path(i), theirs, more)
		require.NoError(t, err)
	}
}

// pendingBodies returns the number of bodies that have not arrived completely.
func (f *fixture) pendingBodies() int {
	f.bodyMemory.mu.Lock()
	defer f.bodyMemory.mu.Unlock()
	return (maxBodies - f.bodyMemory.free) / firstChunk
}

// send posts a signed push with a unique body, and returns the status and duration.
func (f *fixture) send(t *testing.T, source, path string, h func(body string) header) (int, time.Duration) {
	t.Helper()
	f.sent++
	// as long as a push of several commits
	body := fmt.Sprintf(`{"ref":"refs/heads/main","by":"%d %s"}`, f.sent, strings.Repeat("x", 20_000))
	req, err := http.NewRequest(http.MethodPost, "http://"+f.address+path, strings.NewReader(body))
	require.NoError(t, err)
	req.Header.Set("X-Forwarded-For", source)
	for k, v := range h(body) {
		req.Header.Set(k, v)
	}
	began := time.Now()
	res, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: time.Minute}).Do(req)
	require.NoError(t, err)
	require.NoError(t, res.Body.Close())
	return res.StatusCode, time.Since(began)
}

// TestSlowUnprovenSenders: connections of a stranger with many paths and incomplete bodies do not
// delay others, and count as failures.
func TestSlowUnprovenSenders(t *testing.T) {
	const push, connections = "/hooks/garden/prod/push", 600
	sign := func(body string) header { return signed(body, noon) }
	delivers := func(t *testing.T, f *fixture, source string) {
		t.Helper()
		for range 6 {
			status, took := f.send(t, source, push, sign)
			assert.Equal(t, http.StatusAccepted, status)
			assert.Less(t, took, prompt)
		}
	}
	own := func(i int) string { return fmt.Sprintf("/x%d", i) }

	t.Run("elsewhere", func(t *testing.T) {
		f := newProxiedFixture(t, time.Minute)
		f.openSlowConnections(t, connections, own, "")
		require.Eventually(t, func() bool { return f.pendingBodies() == connections }, time.Minute, time.Millisecond)
		delivers(t, f, proxiedAddress)
		assert.Equal(t, connections, f.pendingBodies(), "all the time")
	})
	t.Run("at the same address", func(t *testing.T) { // as behind an unknown proxy
		f := newProxiedFixture(t, time.Minute)
		delivers(t, f, theirs)
		f.openSlowConnections(t, connections, own, "")
		// they know the path, too
		f.openSlowConnections(t, 400, func(int) string { return push }, SignatureHeader+": sha256=00\r\n")
		require.Eventually(t, func() bool { return f.pendingBodies() == connections+400 }, time.Minute, time.Millisecond)
		delivers(t, f, theirs)
	})
	t.Run("are stopped", func(t *testing.T) {
		f := newProxiedFixture(t, 4*time.Second)
		delivers(t, f, theirs)
		f.openSlowConnections(t, connections, own, "")
		none := func(string) header { return nil }
		require.Eventually(t, func() bool { return f.pendingBodies() > failureBurst }, time.Minute, time.Millisecond)
		require.Eventually(t, func() bool { return f.pendingBodies() == 0 }, time.Minute, time.Millisecond)
		status, _ := f.send(t, theirs, "/another", none)
		assert.Equal(t, http.StatusTooManyRequests, status, "bodies that never came are failures")
		delivers(t, f, theirs) // a source that proved the secret of this path
		status, _ = f.send(t, theirs, "/hooks/garden/prod/other", sign)
		assert.Equal(t, http.StatusTooManyRequests, status, "another path is as good as none")
		status, _ = f.send(t, theirs, push, none)
		assert.Equal(t, http.StatusTooManyRequests, status, "and so is no proof")
		status, _ = f.send(t, proxiedAddress, "/another", none)
		assert.Equal(t, http.StatusNotFound, status, "others are not stopped")
	})
}
