// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
)

func start(t *testing.T, clock clock.WithTicker, do Reconcile) *Queue {
	t.Helper()
	q := New(clock, slog.New(slog.DiscardHandler), do)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { q.Run(ctx); close(ended) }()
	t.Cleanup(func() {
		cancel()
		select {
		case <-ended:
		case <-time.After(10 * time.Second):
			t.Error("the queue did not end with its context")
		}
	})
	return q
}

func receiveCall(t *testing.T, calls <-chan string) string {
	t.Helper()
	select {
	case key := <-calls:
		return key
	case <-time.After(10 * time.Second):
		require.Fail(t, "nothing was worked off")
		return ""
	}
}

func TestFailuresAreRetried(t *testing.T) {
	calls, n := make(chan string, 10), 0
	q := start(t, clock.RealClock{}, func(_ context.Context, key string) (time.Duration, error) {
		n++
		calls <- key
		switch n {
		case 1:
			return 0, errors.New("not yet")
		case 2:
			panic("odd object")
		}
		return 0, nil
	})
	q.Add("a")
	for range 3 {
		assert.Equal(t, "a", receiveCall(t, calls))
	}
	q.Add("b")
	assert.Equal(t, "b", receiveCall(t, calls), "after a panic the others go on")
}

func TestRequeueAfter(t *testing.T) {
	fake := clocktesting.NewFakeClock(time.Now())
	calls := make(chan string, 10)
	q := start(t, fake, func(_ context.Context, key string) (time.Duration, error) {
		calls <- key
		return time.Minute, nil
	})
	q.Add("a")
	receiveCall(t, calls)
	require.Eventually(t, func() bool {
		fake.Step(20 * time.Second)
		return len(calls) > 0
	}, 10*time.Second, time.Millisecond)
}

func TestHandlerAddsDeletedObjects(t *testing.T) {
	calls := make(chan string, 10)
	q := start(t, clock.RealClock{}, func(_ context.Context, key string) (time.Duration, error) {
		calls <- key
		return 0, nil
	})
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "pod"}}
	q.Handler().OnAdd(pod, true)
	assert.Equal(t, "ns/pod", receiveCall(t, calls))
	q.Handler().OnUpdate(pod, pod)
	assert.Equal(t, "ns/pod", receiveCall(t, calls))
	q.Handler().OnDelete(cache.DeletedFinalStateUnknown{Key: "ns/pod", Obj: pod})
	assert.Equal(t, "ns/pod", receiveCall(t, calls))
}
