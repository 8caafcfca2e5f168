package faults

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
)

// jumping is an adjustable clock; timers still take their real time.
type jumping struct {
	clock.RealClock
	off atomic.Int64
}

func (c *jumping) Now() time.Time { return c.RealClock.Now().Add(time.Duration(c.off.Load())) }

func (c *jumping) Since(t time.Time) time.Duration { return c.Now().Sub(t) }

// TestClockJumps moves the clock forward and backward, while the process works and while it waits.
func TestClockJumps(t *testing.T) {
	for name, jump := range map[string]time.Duration{"forward": 30 * time.Hour, "backward": -30 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, 5*time.Minute)
			now := &jumping{}
			p := w.start("seed", func(s *setup) { s.cluster.Clock, s.manager.Clock = now, now })
			leap := func() { now.off.Add(int64(jump)) }

			done := p.at(1+chance(t).IntN(10), leap)
			w.declare("thing", "seed", w.before())
			w.come(done)
			w.settled()

			leap()
			changed := w.object(settingsAt(1))
			w.patch(changed, "{data: {a: other}}")
			w.settled()
			gone := w.object(credentials)
			require.NoError(t, w.resource(gone).Delete(w.ctx, gone.GetName(), metav1.DeleteOptions{}))
			leap()
			w.settled()

			// The clock jumps while the process waits after a failure.
			failing := w.object("{apiVersion: v1, kind: ConfigMap, metadata: {name: later, namespace: NS-later}}")
			w.may(w.objects(old, fixedAt(1))...)
			w.declare("thing", "seed", append(w.after(), failing))
			w.until(deadline, func() []string {
				if w.complaint("thing") == "" {
					return []string{"nothing fails"}
				}
				return nil
			})
			leap()
			w.create("{apiVersion: v1, kind: Namespace, metadata: {name: NS-later}}")
			w.settledWithin(2 * deadline)

			done = p.at(3, leap)
			w.withdraw("thing")
			w.come(done)
			w.settled()
		})
	}
}
