// SPDX-License-Identifier: Apache-2.0

package owner

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	clocktesting "k8s.io/utils/clock/testing"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/apply/flow"
	"github.com/pergola-dev/pergola/controllers/owner/blockreasons"
	"github.com/pergola-dev/pergola/controllers/rotation"
	"github.com/pergola-dev/pergola/render"
)

// newRecordedWriter returns the writer of a Garden that sends its writes to a channel.
func newRecordedWriter(clk *clocktesting.FakeClock) (*statusWriter, <-chan string) {
	out := make(chan string, 10)
	s := (&Reconciler{Clock: clk}).newStatus(&ownerSession{Owner: Owner{Input: render.Input{Owner: render.Owner{Kind: Garden, Name: "local"}}, Ref: apply.Ref{Kind: "Garden", Name: "local"}}})
	s.lastWrite = clk.Now()
	s.write = func(_ context.Context, fields map[string]any) error {
		op := fields["lastOperation"].(gardencorev1beta1.LastOperation)
		out <- fmt.Sprintf("%d%% %s at %s", op.Progress, op.Description, op.LastUpdateTime.UTC().Format("05"))
		return nil
	}
	return s, out
}

func TestNewestProgressIsWrittenWhenTheIntervalIsOver(t *testing.T) {
	clk := clocktesting.NewFakeClock(time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC))
	s, written := newRecordedWriter(clk)
	event := func(id string, percent int) {
		s.recordProgress(flow.Event{ID: id, State: flow.Healthy, Progress: flow.Progress{Percent: percent}}, "")
	}
	waiting := func() {
		t.Helper()
		require.Eventually(t, clk.HasWaiters, 10*time.Second, time.Millisecond)
	}
	next := func() string {
		t.Helper()
		select {
		case text := <-written:
			return text
		case <-time.After(10 * time.Second):
			require.Fail(t, "nothing was written")
			return ""
		}
	}
	event("a", 10)
	waiting()
	clk.Step(2 * time.Second)
	event("b", 20)
	event("c", 60)
	assert.Empty(t, written, "not within the interval")
	clk.Step(3 * time.Second)
	assert.Equal(t, "60% c: Healthy at 05", next())

	clk.Step(7 * time.Second)
	event("d", 70)
	assert.Equal(t, "70% d: Healthy at 12", next(), "at once after a long time")
	event("d", 70)
	event("e", 80)
	waiting()
	require.NoError(t, s.finish(t.Context(), nil))
	assert.Equal(t, "100% Garden local has been successfully reconciled. at 12", next())
	clk.Step(time.Minute)
	assert.Empty(t, written, "nothing follows the end")
}

func TestProgressSaysWhatIsWaitedFor(t *testing.T) {
	clk := clocktesting.NewFakeClock(time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC))
	s, written := newRecordedWriter(clk)
	s.lastWrite = clk.Now().Add(-progressInterval)
	s.recordProgress(flow.Event{ID: "kube-apiserver", State: flow.Healthy, MessageOnly: true, Message: "Deployment shoot--a/kube-apiserver: CrashLoopBackOff", Progress: flow.Progress{Percent: 93}}, "")
	select {
	case text := <-written:
		assert.Equal(t, "93% kube-apiserver waits: Deployment shoot--a/kube-apiserver: CrashLoopBackOff at 00", text)
	case <-time.After(10 * time.Second):
		require.Fail(t, "nothing was written")
	}
}

// TestProgressOfARotation checks that a flow with several passes reaches 100 % only once.
func TestProgressOfARotation(t *testing.T) {
	clk := clocktesting.NewFakeClock(time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC))
	s, written := newRecordedWriter(clk)
	r := &run{reconciler: s.reconciler, owner: s.owner, status: s, blockReasons: blockreasons.New(flow.Graph{}), round: rotation.Round{Number: 2, Total: 3, Task: "the rest"}}
	var told []Event
	r.reconciler.Hooks.OnEvent = func(e Event) { told = append(told, e) }
	s.lastWrite = clk.Now().Add(-progressInterval)
	r.reportEvent(flow.Event{ID: "kube-apiserver", State: flow.Healthy, Progress: flow.Progress{Percent: 50}})
	select {
	case text := <-written:
		assert.Equal(t, "50% kube-apiserver: Healthy (rotation of credentials, round 2 of 3: the rest) at 00", text)
	case <-time.After(10 * time.Second):
		require.Fail(t, "nothing was written")
	}
	require.Len(t, told, 1)
	assert.Equal(t, 50, told[0].Progress.Percent)
	assert.Equal(t, 66, rotation.Round{Number: 2, Total: 3}.Percent(99))
}

func TestProgressIsNotWrittenAfterTheLeaseIsLost(t *testing.T) {
	clk := clocktesting.NewFakeClock(time.Now())
	s, written := newRecordedWriter(clk)
	s.recordProgress(flow.Event{ID: "a", State: flow.Applied}, "")
	require.Eventually(t, clk.HasWaiters, 10*time.Second, time.Millisecond)
	s.stop()
	clk.Step(time.Minute)
	s.writers.Wait()
	assert.Empty(t, written)
}

// TestAnInterruptionIsNoError checks that a stopped process or newer input is not a failure, and
// that earlier failures are reported.
func TestAnInterruptionIsNoError(t *testing.T) {
	canceled := &apply.ObjectError{Object: apply.Ref{Kind: "ConfigMap", Name: "a"}, Op: "apply", Reason: apply.ReasonCanceled, Message: "interrupted before it was done", Err: context.Canceled}
	broken := &apply.ObjectError{Object: apply.Ref{Kind: "ConfigMap", Name: "b"}, Op: "apply", Reason: apply.ReasonInvalid, Message: "no good"}
	for name, c := range map[string]struct {
		cause error
		want  string
	}{
		"stopped":           {fmt.Errorf("bundle x: %w", errors.Join(fmt.Errorf("interrupted: %w", context.Canceled), apply.Errors{canceled})), "Pending 40% It was interrupted, and continues with the next reconciliation."},
		"and nothing known": {nil, "Pending 40% It was interrupted, and continues with the next reconciliation."},
		"after a failure":   {fmt.Errorf("bundle x: %w", apply.Errors{broken, canceled}), "Error 40% bundle x: " + broken.Error()},
	} {
		t.Run(name, func(t *testing.T) {
			clk := clocktesting.NewFakeClock(time.Now())
			s, _ := newRecordedWriter(clk)
			s.operation = gardencorev1beta1.LastOperation{Type: "Create", State: "Processing", Progress: 40, Description: "a: Healthy"}
			var got string
			s.write = func(_ context.Context, fields map[string]any) error {
				op := fields["lastOperation"].(gardencorev1beta1.LastOperation)
				got = fmt.Sprintf("%s %d%% %s", op.State, op.Progress, op.Description)
				assert.Equal(t, gardencorev1beta1.LastOperationTypeCreate, operationType(Shoot, &op), "it is continued")
				return nil
			}
			require.NoError(t, s.writeInterrupted(t.Context(), c.cause))
			assert.Equal(t, c.want, got)
		})
	}
}
