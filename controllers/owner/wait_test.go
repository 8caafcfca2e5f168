// SPDX-License-Identifier: Apache-2.0

package owner

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/apply/flow"
	"github.com/pergola-dev/pergola/health"
)

func TestReplicasMissing(t *testing.T) {
	type fields = map[string]any
	for name, c := range map[string]struct {
		kind         string
		spec, status fields
		want         string
	}{
		"done":                      {"Deployment", fields{"replicas": int64(2)}, fields{"replicas": int64(2), "updatedReplicas": int64(2)}, ""},
		"default of one":            {"Deployment", fields{}, fields{"replicas": int64(1), "updatedReplicas": int64(1)}, ""},
		"none wanted":               {"Deployment", fields{"replicas": int64(0)}, fields{}, ""},
		"none updated yet":          {"Deployment", fields{"replicas": int64(1)}, fields{"replicas": int64(1)}, "DeploymentProgressing: 0 of 1 replicas are up to date, 1 old ones remain"},
		"an old one is still there": {"Deployment", fields{"replicas": int64(1)}, fields{"replicas": int64(2), "updatedReplicas": int64(1)}, "DeploymentProgressing: 1 of 1 replicas are up to date, 1 old ones remain"},
		"another kind":              {"StatefulSet", fields{"replicas": int64(1)}, fields{}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			obj := &unstructured.Unstructured{Object: map[string]any{"kind": c.kind, "spec": c.spec, "status": c.status}}
			assert.Equal(t, c.want, rolloutProgress(obj))
		})
	}
	assert.Empty(t, rolloutProgress(nil))
}

func TestDescribeReadsAsOneSentence(t *testing.T) {
	v := health.Verdict{Kind: "Deployment", Namespace: "garden", Name: "etcd-druid", Reason: "DeploymentProgressing", Message: "is progressing.; pod etcd-druid-x: Pending."}
	assert.Equal(t, "cluster runtime: Deployment garden/etcd-druid: DeploymentProgressing: is progressing; pod etcd-druid-x: Pending.", describeVerdict("runtime", v))
}

// countingClock is a clock that counts calls of Since: one or two in every round of waiting.
type countingClock struct {
	*clocktesting.FakeClock
	sinceCalls atomic.Int64
}

func (c *countingClock) Since(t time.Time) time.Duration {
	defer c.sinceCalls.Add(1)
	return c.FakeClock.Since(t)
}

func TestWaitMessageIsRepeated(t *testing.T) {
	clk := &countingClock{FakeClock: clocktesting.NewFakeClock(time.Now())}
	work := &run{reconciler: &Reconciler{Clock: clk}}
	waits := []waiter{{cluster: emptyCluster(t, "virtual"), refs: []apply.Ref{{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition", Name: "trees.example.org"}}}}
	ctx, cancel := context.WithCancel(t.Context())
	type said struct {
		text string
		at   time.Time
	}
	heard, ended := make(chan said, 10), make(chan error, 1)
	go func() {
		ended <- work.waitAll(ctx, waits, false, func(_ flow.State, text string) { heard <- said{text, clk.Now()} })
	}()
	require.Eventually(t, func() bool { return clk.sinceCalls.Load() > 0 }, 10*time.Second, time.Millisecond)
	for range 25 {
		before := clk.sinceCalls.Load()
		clk.Step(3 * time.Second)
		require.Eventually(t, func() bool { return clk.sinceCalls.Load() > before }, 10*time.Second, time.Millisecond)
	}
	cancel()
	require.ErrorContains(t, <-ended, "interrupted")
	require.GreaterOrEqual(t, len(heard), 2, "75 s")
	first, second := <-heard, <-heard
	assert.Contains(t, first.text, "CustomResourceDefinition trees.example.org")
	assert.Equal(t, first.text, second.text)
	assert.InDelta(t, 28.5, second.at.Sub(first.at).Seconds(), 4.5, "not in every round, but every half a minute")
}
