// SPDX-License-Identifier: Apache-2.0

package owner

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/apply/flow"
	"github.com/pergola-dev/pergola/controllers/permit"
)

// TestWaitingStepRecreatesDeletedObjects checks that a waiting step recreates deleted objects
// instead of timing out. Held objects are reported once.
func TestWaitingStepRecreatesDeletedObjects(t *testing.T) {
	for name, direct := range map[string]bool{"direct": true, "managed": false} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			s.run.reconciler.Gate = permit.Gate{MaxDeletions: ptr.To(0)}
			clk := clocktesting.NewFakeClock(time.Now())
			s.run.reconciler.Clock = clk
			s.mustApply(s.bundle(direct, s.configMap("one"), s.configMap("two"), s.configMap("held")))
			w, err := s.run.applyBundle(s.ctx, s.bundle(direct, s.configMap("one"), s.configMap("two")))
			require.NoError(t, err)
			require.NoError(t, s.resource("configmaps", s.ns).Delete(s.ctx, "two", metav1.DeleteOptions{}))
			s.eventually("the cache sees that it is gone", func() bool {
				_, err := w.cluster.Get(s.ctx, w.refs[1])
				return err != nil
			})

			made := 0
			s.run.reconciler.Hooks.OnObject = func(_, _ string, r apply.ObjectResult) {
				if r.Ref.Name == "two" && r.Action == apply.Created {
					made++
				}
			}
			ended := make(chan error, 1)
			waits := []waiter{w}
			go func() { ended <- s.run.waitAll(s.ctx, waits, true, func(flow.State, string) {}) }()
			s.eventually("it ends", func() bool {
				clk.Step(pollInterval)
				return len(ended) > 0
			})
			require.NoError(t, <-ended)
			assert.Equal(t, 1, made)
			_, err = s.resource("configmaps", s.ns).Get(s.ctx, "two", metav1.GetOptions{})
			require.NoError(t, err)
			assert.Equal(t, w.changeCounts.Total()+1, waits[0].changeCounts.Total(), "and counts as written")
			require.Len(t, s.run.report.Held, 1)
			assert.Equal(t, "held", s.run.report.Held[0].Objects[0].Ref.Name)
		})
	}
}
