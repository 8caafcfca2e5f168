// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
)

// adjustableClock is an adjustable clock; timers still take their real time.
type adjustableClock struct {
	clock.RealClock
	offset atomic.Int64
}

func (c *adjustableClock) Now() time.Time {
	return c.RealClock.Now().Add(time.Duration(c.offset.Load()))
}

func (c *adjustableClock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }

// TestClockJumps moves the clock forward and backward, while the process works and while it waits.
func TestClockJumps(t *testing.T) {
	for name, jump := range map[string]time.Duration{"forward": 30 * time.Hour, "backward": -30 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, 5*time.Minute)
			now := &adjustableClock{}
			p := w.startEngine("seed", func(s *processOptions) { s.cluster.Clock, s.manager.Clock = now, now })
			leap := func() { now.offset.Add(int64(jump)) }

			done := p.callAt(1+newRand(t).IntN(10), leap)
			w.declareResource("thing", "seed", w.initialObjects())
			w.waitForEvent(done)
			w.requireCorrectState()

			leap()
			changed := w.object(settingsAt(1))
			w.patch(changed, "{data: {a: other}}")
			w.requireCorrectState()
			gone := w.object(credentials)
			require.NoError(t, w.resource(gone).Delete(w.ctx, gone.GetName(), metav1.DeleteOptions{}))
			leap()
			w.requireCorrectState()

			// The clock jumps while the process waits after a failure.
			failing := w.object("{apiVersion: v1, kind: ConfigMap, metadata: {name: later, namespace: NS-later}}")
			w.allowDeletion(w.objects(removedObject, immutableObjectAt(1))...)
			w.declareResource("thing", "seed", append(w.changedObjects(), failing))
			w.waitUntilCorrect(stateTimeout, func() []string {
				if w.conditionComplaint("thing") == "" {
					return []string{"nothing fails"}
				}
				return nil
			})
			leap()
			w.create("{apiVersion: v1, kind: Namespace, metadata: {name: NS-later}}")
			w.requireCorrectStateWithin(2 * stateTimeout)

			done = p.callAt(3, leap)
			w.deleteResource("thing")
			w.waitForEvent(done)
			w.requireCorrectState()
		})
	}
}
