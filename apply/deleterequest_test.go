// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/pergola-dev/pergola/change"
)

// TestSlowRecreationIsApprovedOnce: the approval of a recreation is used as soon as
// the deletion is requested. Later runs wait and create the object without asking again, but the
// next recreation needs an approval.
func TestSlowRecreationIsApprovedOnce(t *testing.T) {
	const soon = 200 * time.Millisecond
	for name, c := range map[string]struct {
		interrupted bool // ctx of the first run ends during its wait
		noWait      bool
		want        Action
	}{
		"the time for deletions is up": {false, false, Failed},
		"the time of the run is up":    {true, false, Failed},
		"nobody waits":                 {false, true, Deleting},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			before := f.immutableObject("ConfigMap", "one")
			before.SetFinalizers([]string{"test.example.com/slow"})
			f.releaseOnCleanup(before)
			f.mustApply(f.set(before))
			asked, allowed := 0, true
			run := func(ctx context.Context, value string, timeout time.Duration) ObjectResult {
				var heard []ObjectResult
				_, _ = f.e.Apply(ctx, f.c, f.set(f.immutableObject("ConfigMap", value)), f.inv, ApplyOptions{DeleteTimeout: timeout, NoWait: c.noWait,
					HoldRecreate: func(Entry) *change.Reason { asked++; return holdReason(!allowed, "not now") },
					OnObject:     func(r ObjectResult) { heard = append(heard, r) }})
				require.Len(t, heard, 1)
				return heard[0]
			}
			ctx, cancel := context.WithCancel(f.ctx)
			defer cancel()
			engine := f.e
			if c.interrupted {
				clock := clocktesting.NewFakeClock(time.Now())
				f.e = newEngine(Options{Clock: clock})
				var ends sync.WaitGroup
				defer ends.Wait()
				defer cancel()
				ends.Go(func() {
					assert.Eventually(t, func() bool { return clock.HasWaiters() || ctx.Err() != nil }, time.Minute, 10*time.Millisecond)
					cancel() // the run waits until the object no longer exists
				})
			}
			out := run(ctx, "two", soon)
			f.e = engine
			assert.Equal(t, c.want, out.Action, out.Message)
			assert.True(t, out.DeleteRequested)
			require.Equal(t, 1, asked)

			allowed = false
			out = run(f.ctx, "two", soon)
			assert.Equal(t, c.want, out.Action, "it is waited for: %s", out.Message)
			assert.False(t, out.DeleteRequested, "it was told before")
			f.removeFinalizers(before)
			out = run(f.ctx, "two", soon)
			assert.Equal(t, Created, out.Action, out.Message)
			assert.False(t, out.DeleteRequested)
			assert.Equal(t, "two", nested(f.get(before), "data", "key"))
			assert.Equal(t, 1, asked, "it was approved once")

			assert.Equal(t, HeldBack, run(f.ctx, "three", time.Minute).Action)
			assert.Equal(t, 2, asked, "another recreation is another one")
			allowed = true
			out = run(f.ctx, "three", time.Minute)
			assert.Equal(t, Recreated, out.Action)
			assert.True(t, out.DeleteRequested)
		})
	}
}

// TestDeleteRequestedIsReportedOnce: for a pruned object, too, only the run that requested the
// deletion reports it.
func TestDeleteRequestedIsReportedOnce(t *testing.T) {
	for _, noWait := range []bool{false, true} {
		f := newFixture(t)
		stuck, goes := f.stuckConfigMap("stuck"), f.configMap("goes", "x")
		f.releaseOnCleanup(stuck)
		f.mustApply(f.set(stuck, goes, f.configMap("stays", "x")))
		run := func() map[string]bool {
			r, err := f.e.Apply(f.ctx, f.c, f.set(f.configMap("stays", "x")), f.inv, ApplyOptions{DeleteTimeout: 200 * time.Millisecond, NoWait: noWait})
			require.NoError(t, err)
			out := map[string]bool{}
			for _, o := range r.Objects {
				out[string(o.Action)+" "+o.Ref.Name] = o.DeleteRequested
			}
			return out
		}
		assert.Equal(t, map[string]bool{"unchanged stays": false, "deleting stuck": true, "deleted goes": true}, run())
		assert.Equal(t, map[string]bool{"unchanged stays": false, "deleting stuck": false}, run())
		f.removeFinalizers(stuck)
		assert.Equal(t, map[string]bool{"unchanged stays": false, "gone stuck": false}, run())
	}
}

// TestInFlightCreateIsNotDeleteRequested: while a previous instance may create an object again, its
// deletion does not count as requested. The object may come back and is deleted again.
func TestInFlightCreateIsNotDeleteRequested(t *testing.T) {
	f := newFixture(t)
	late, slow := f.configMap("late", "x"), f.stuckConfigMap("slow")
	f.releaseOnCleanup(slow)
	f.mustApply(f.set(late, slow))
	f.inv = NewMemoryInventory(Entry{Ref: RefOf(late)}, Entry{Ref: RefOf(slow)})
	f.e.ExpectLateRequests(time.Minute)
	r := f.mustApply(f.set(f.configMap("stays", "x")))
	require.Equal(t, map[string]Action{"ConfigMap/stays": Created, "ConfigMap/late": Deleting, "ConfigMap/slow": Deleting}, actions(r))
	assert.False(t, f.exists(late))
	for _, o := range r.Objects {
		assert.False(t, o.DeleteRequested, o.Ref.Name)
	}
}
