// SPDX-License-Identifier: Apache-2.0

package condition_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/yaml"

	"github.com/pergola-dev/pergola/api/core/v1beta1"
	"github.com/pergola-dev/pergola/hack/corpus"
	"github.com/pergola-dev/pergola/health/condition"
)

func TestConformanceThresholds(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join(corpus.Dir(t), "thresholds", "gardener-failed-condition.yaml"))
	require.NoError(t, err)
	var file struct {
		Cases []struct {
			Name          string
			Now           time.Time
			Thresholds    map[v1beta1.ConditionType]metav1.Duration
			LastOperation *v1beta1.LastOperation
			Old           v1beta1.Condition
			Failure       struct{ Reason, Message string }
			Expect        v1beta1.ConditionStatus
		}
	}
	require.NoError(t, yaml.Unmarshal(raw, &file))
	require.NotEmpty(t, file.Cases)
	for _, c := range file.Cases {
		t.Run(c.Name, func(t *testing.T) {
			thresholds := condition.Thresholds{}
			for kind, d := range c.Thresholds {
				thresholds[kind] = d.Duration
			}
			b := condition.New(clocktesting.NewFakePassiveClock(c.Now), thresholds)
			got := b.Failed(c.Old, c.LastOperation, c.Failure.Reason, c.Failure.Message)
			assert.Equal(t, c.Expect, got.Status)
		})
	}
}

const kind = v1beta1.ConditionType("RuntimeComponentsHealthy")

// testStart is the start time of all tests.
var testStart = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func TestFailureOutlivesThreshold(t *testing.T) {
	clk := clocktesting.NewFakeClock(testStart)
	b := condition.New(clk, condition.Thresholds{kind: time.Minute})
	c := b.OK(b.Initial(kind), "Running", "all well")
	require.Equal(t, v1beta1.ConditionTrue, c.Status)

	clk.Step(time.Hour)
	began := clk.Now()
	for _, step := range []struct {
		after  time.Duration
		expect v1beta1.ConditionStatus
	}{
		{0, v1beta1.ConditionProgressing},
		{30 * time.Second, v1beta1.ConditionProgressing},
		{60 * time.Second, v1beta1.ConditionProgressing},
		{61 * time.Second, v1beta1.ConditionFalse},
		{10 * time.Minute, v1beta1.ConditionFalse},
	} {
		clk.SetTime(began.Add(step.after))
		c = b.Failed(c, nil, "DeploymentUnhealthy", "not available")
		assert.Equal(t, step.expect, c.Status, "after %s", step.after)
	}
	assert.Equal(t, began.Add(61*time.Second), c.LastTransitionTime.Time)

	c = b.Failed(c, nil, "EtcdUnhealthy", "another trouble")
	assert.Equal(t, v1beta1.ConditionProgressing, c.Status, "another reason gets its own time")
	c = b.OK(c, "Running", "all well")
	assert.Equal(t, v1beta1.ConditionTrue, c.Status)
}

// TestMessagesDoNotProlongThresholds: new messages do not restart the threshold of a failure.
func TestMessagesDoNotProlongThresholds(t *testing.T) {
	clk := clocktesting.NewFakeClock(testStart)
	b := condition.New(clk, condition.Thresholds{kind: time.Minute})
	c := b.OK(b.Initial(kind), "Running", "all well")
	for i := range 7 {
		c = b.Failed(c, nil, "DeploymentUnhealthy", strings.Repeat("!", i))
		assert.Equal(t, clk.Now(), c.LastUpdateTime.Time)
		want := v1beta1.ConditionProgressing
		if i == 6 {
			want = v1beta1.ConditionFalse
		}
		assert.Equal(t, want, c.Status, "check %d", i)
		clk.Step(11 * time.Second)
	}
}

// TestClockSetBack: times ahead of a clock that was set back do not prolong Progressing beyond the
// threshold, neither of a transition nor of an operation.
func TestClockSetBack(t *testing.T) {
	clk := clocktesting.NewFakeClock(testStart.Add(time.Hour))
	b := condition.New(clk, condition.Thresholds{kind: time.Minute})
	last := &v1beta1.LastOperation{State: v1beta1.LastOperationStateSucceeded, LastUpdateTime: metav1.NewTime(clk.Now())}
	c := b.Failed(b.OK(b.Initial(kind), "Running", "all well"), last, "R", "m")
	require.Equal(t, v1beta1.ConditionProgressing, c.Status)

	clk.SetTime(testStart)
	c = b.Failed(c, last, "R", "m")
	assert.Equal(t, v1beta1.ConditionProgressing, c.Status)
	assert.Equal(t, testStart, c.LastTransitionTime.Time, "the threshold begins again")
	clk.Step(time.Minute)
	assert.Equal(t, v1beta1.ConditionProgressing, b.Failed(c, last, "R", "m").Status)
	clk.Step(time.Second)
	assert.Equal(t, v1beta1.ConditionFalse, b.Failed(c, last, "R", "m").Status)
}

func TestUnknownTurnsFalseInSpiteOfThreshold(t *testing.T) {
	b := condition.New(clocktesting.NewFakeClock(testStart), condition.Thresholds{kind: time.Minute})
	c := b.Unknown(b.Initial(kind), "", "cannot reach the cluster")
	assert.Equal(t, condition.ReasonCheckError, c.Reason)
	assert.Equal(t, v1beta1.ConditionFalse, b.Failed(c, nil, "Down", "down").Status)
}

func TestPardon(t *testing.T) {
	op := func(kind v1beta1.LastOperationType, state v1beta1.LastOperationState) *v1beta1.LastOperation {
		return &v1beta1.LastOperation{Type: kind, State: state}
	}
	someErrors := []v1beta1.LastError{{Description: "x"}}
	for name, c := range map[string]struct {
		last   *v1beta1.LastOperation
		errors []v1beta1.LastError
		expect v1beta1.ConditionStatus
	}{
		"no operation":            {nil, nil, v1beta1.ConditionProgressing},
		"creating with errors":    {op("Create", "Error"), someErrors, v1beta1.ConditionProgressing},
		"deleting":                {op("Delete", "Processing"), someErrors, v1beta1.ConditionProgressing},
		"reconciling":             {op("Reconcile", "Processing"), nil, v1beta1.ConditionProgressing},
		"reconciling with errors": {op("Reconcile", "Processing"), someErrors, v1beta1.ConditionFalse},
		"reconciled":              {op("Reconcile", "Succeeded"), nil, v1beta1.ConditionFalse},
		"created":                 {op("Create", "Succeeded"), nil, v1beta1.ConditionFalse},
		"failed reconcile":        {op("Reconcile", "Failed"), nil, v1beta1.ConditionFalse},
	} {
		t.Run(name, func(t *testing.T) {
			clk := clocktesting.NewFakeClock(testStart)
			b := condition.New(clk, nil)
			list := []condition.Condition{b.Failed(b.OK(b.Initial(kind), "a", "b"), nil, "Bad", "bad", v1beta1.ErrorConfigurationProblem), b.OK(b.Initial("Other"), "ok", "ok")}
			got := b.PardonFailures(list, c.last, c.errors)
			assert.Equal(t, c.expect, got[0].Status)
			assert.Equal(t, "Bad", got[0].Reason)
			assert.Equal(t, list[0].Codes, got[0].Codes)
			assert.Equal(t, v1beta1.ConditionTrue, got[1].Status)
			assert.Equal(t, v1beta1.ConditionFalse, list[0].Status, "the input stays")
		})
	}
}
