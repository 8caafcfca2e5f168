// SPDX-License-Identifier: Apache-2.0

package gardenlet

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"
)

// slowWrites blocks patches of objects by the end of their path while it is on.
type slowWrites struct {
	path             string
	isOn             atomic.Bool
	blocked, release chan struct{}
}

func (s *slowWrites) wrap(c *rest.Config) *rest.Config {
	out := rest.CopyConfig(c)
	out.Wrap(func(next http.RoundTripper) http.RoundTripper { return slowTransport{s, next} })
	return out
}

type slowTransport struct {
	*slowWrites
	next http.RoundTripper
}

func (h slowTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if h.isOn.Load() && r.Method == http.MethodPatch && strings.HasSuffix(r.URL.Path, h.path) {
		h.blocked <- struct{}{}
		<-h.release
	}
	return h.next.RoundTrip(r)
}

// TestHeartbeatDoesNotWaitForAReport: heartbeats continue while the end of a reconciliation waits
// for the write of its report. Other reconciliations do not wait longer than for a request.
func TestHeartbeatDoesNotWaitForAReport(t *testing.T) {
	p := newTestSeed(t)
	p.publish("main@1")
	slow := &slowWrites{path: "/seeds/" + p.name, blocked: make(chan struct{}, 100), release: make(chan struct{})}
	g := p.runGardenlet(func(o *Options) { o.Garden = slow.wrap(o.Garden) })
	p.eventually("it is reconciled", p.isReconciled("Seed", "", p.name))
	at := g.site("seed " + p.name)
	p.eventually("the report says so", func() bool { r := p.readReport(); return r.Digest != "" && len(r.Converging) == 0 })
	slow.isOn.Store(true)
	// A Seed has changes to report if it was reconciled with a different key than the current one.
	of := func(key string) *finishedRun {
		return &finishedRun{worker: at, kind: at.kind, owner: "Seed " + p.name, key: key}
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		assert.NoError(t, g.writeReport(p.ctx, of("another")))
	}()
	select {
	case <-slow.blocked:
	case <-p.ctx.Done():
		t.Fatal("nobody writes the report")
	}
	beats := func() (n int) {
		for _, r := range p.virtualConnection.requestsSince(0) {
			if strings.HasPrefix(r, "PUT ") && strings.HasSuffix(r, "/leases/"+p.name) {
				n++
			}
		}
		return n
	}
	before := beats()
	// One heartbeat may be in flight.
	if !assert.Eventually(t, func() bool { return beats() >= before+5 }, 40*time.Second, 20*time.Millisecond, "the heartbeat goes on") {
		close(slow.release)
		t.FailNow()
	}
	over, cancel := context.WithCancel(p.ctx)
	cancel()
	require.ErrorIs(t, g.writeReport(over, of("a third")), context.Canceled)
	select {
	case <-ended:
		t.Error("the first one has ended")
	default:
	}
	close(slow.release)
	<-ended
	p.eventually("it is told", func() bool { return len(p.readReport().Converging) == 1 })
	require.NoError(t, g.stop())
}
